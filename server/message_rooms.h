// MessageRooms: what messages of streams may take on their way from a client to the queue or the database, all streams
// together: large ones that were read, chunks that are parsed and decoded, definitions that are parsed and numbered. Each of
// its own, so that definitions which wait for the database hold up no chunk. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/memory_room.h"

namespace stepwell {

struct MessageRooms {
  MessageRooms(std::int64_t read_bytes_max, std::int64_t chunk_bytes_max,
               std::int64_t definition_bytes_max)
      : read(read_bytes_max), chunks(chunk_bytes_max), definitions(definition_bytes_max) {}

  void SetTight(bool is_tight_now) {
    is_tight.store(is_tight_now, std::memory_order_relaxed);
    for (MemoryRoom* room : {&read, &chunks, &definitions}) room->SetTight(is_tight_now);
  }

  // As gRPC holds them.
  MemoryRoom read;
  MemoryRoom chunks;
  // And whatever is no chunk.
  MemoryRoom definitions;
  // The process is near its limit: readers are shed, and of each kind one message at a time goes on.
  std::atomic<bool> is_tight = false;
};

}  // namespace stepwell
