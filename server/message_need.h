// MessageNeed: what a message of a stream takes while it is worked on, and what it is, known before anything of it is built.
// A core.
//
//   MessageNeed need = NeedOf(reader, byte_count);
//   if (need.may.ok() && !need.is_small()) need.head = HeadOf(again);   // and take room for need.bytes()
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"

namespace google::protobuf::io {
class ZeroCopyInputStream;
}  // namespace google::protobuf::io

namespace stepwell {

// One of each stream is worked on without asking: 16 KiB of a chunk, some twenty definitions.
inline constexpr std::int64_t kSmallNeedBytes = 64 << 10;
// A chunk's body as it was parsed, its message in an arena, its journal entry as it grows. What it becomes has its place in the
// queue.
inline constexpr std::int64_t kChunkNeedFactor = 4;
// Definitions as they were parsed, as they are checked, as the store asks for them.
inline constexpr std::int64_t kDefinitionNeedFactor = 3;

// What parsing would say.
struct MessageHead {
  // Of several the last one counts, as in a parsed one.
  pb::StreamChunksRequest::MessageCase kind = pb::StreamChunksRequest::MESSAGE_NOT_SET;
  // And nothing of another kind is built on the way to it.
  bool is_chunk = false;
  std::string writer = {};
};

struct MessageNeed {
  // Its bytes and what is built of them.
  std::int64_t whole_bytes = 0;
  // kResourceExhausted: more would be built of it than of any; kInvalidArgument: it is no such message.
  absl::Status may = {};
  MessageHead head = {};

  bool is_small() const { return whole_bytes * kChunkNeedFactor <= kSmallNeedBytes; }
  std::int64_t bytes() const {
    return whole_bytes * (head.is_chunk ? kChunkNeedFactor : kDefinitionNeedFactor);
  }
};

// Leaves `head` as it is.
MessageNeed NeedOf(google::protobuf::io::ZeroCopyInputStream& bytes_untrusted,
                   std::size_t byte_count);
// Passes over all bytes; of what is no message as far as it goes.
MessageHead HeadOf(google::protobuf::io::ZeroCopyInputStream& bytes_untrusted);

}  // namespace stepwell
