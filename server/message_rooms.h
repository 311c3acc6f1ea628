// MessageRooms: what messages of streams may take on their way from a client to the queue or the database, all streams
// together. Thread-safe.
//
// Who holds which bytes while it waits for what:
//
//   what                                               is counted in              waits for
//   a small message (kSmallNeedBytes) as it is parsed,
//     64 KiB of them as they were read                 nothing: so much a stream  anything
//   bytes a client sent that nobody reads yet          gRPC: a window each        anything
//   a large message, read or being read, of a stream
//     whose last one was a chunk                       read_chunks                room in `chunks`
//     whose last one was something else                read_others                room in `others`
//     whose last one waited for its own stream         held                       its own stream
//   a chunk, parsed, decoded                           chunks                     room in the queue
//   anything else, parsed, numbered                    others                     the database
//
// "Its own stream": its rate, its client who takes no answers, what of it is on its way to the database. Hence:
// - Whoever is in a room waits for what all in that room wait for, so that nobody is held up by another's client, token or
//   series. A message that turns out to wait for something else goes over to that room at once, whether there is place or
//   not: it is there. What comes too many are one of each stream.
// - What a message waits for by itself it waits for before it is parsed (IngestStream::Admit). From there on it waits for
//   nothing but the queue, or the database.
// - A stream holds one large message at a time: nothing is read behind one before it is done.
// - Who waits for a room before it reads holds nothing. Its heartbeats are not read meanwhile, but its writers count as heard
//   (IngestStream::NoteWaiting); who sends small messages waits for no room at all.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/memory_room.h"

namespace stepwell {

struct MessageRooms {
  // REQUIRES: all >= 4.
  MessageRooms(std::int64_t read_bytes_max, std::int64_t chunk_bytes_max,
               std::int64_t other_bytes_max)
      : read_chunks(read_bytes_max / 2),
        read_others(read_bytes_max / 4),
        held(read_bytes_max / 4),
        chunks(chunk_bytes_max),
        others(other_bytes_max) {}

  void SetTight(bool is_tight_now) {
    is_tight.store(is_tight_now, std::memory_order_relaxed);
    for (MemoryRoom* room : {&read_chunks, &read_others, &held, &chunks, &others}) {
      room->SetTight(is_tight_now);
    }
  }

  // As gRPC holds them.
  MemoryRoom read_chunks;
  MemoryRoom read_others;
  MemoryRoom held;
  // As they are worked on.
  MemoryRoom chunks;
  MemoryRoom others;
  // The process is near its limit: readers are shed, and of each kind one message at a time goes on.
  std::atomic<bool> is_tight = false;
};

}  // namespace stepwell
