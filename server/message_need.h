// MessageNeed: what a message of a stream takes while it is worked on, known before anything of it is built. A core.
//
//   const MessageNeed need = NeedOf(reader, byte_count);
//   if (need.bytes > kSmallNeedBytes) place = room.Take(need.bytes, goes_on);
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

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

struct MessageNeed {
  bool is_chunk = false;
  std::int64_t bytes = 0;
  // kResourceExhausted: more would be built of it than of any; kInvalidArgument: it is no such message.
  absl::Status may;
};

MessageNeed NeedOf(google::protobuf::io::ZeroCopyInputStream& bytes_untrusted,
                   std::size_t byte_count);

}  // namespace stepwell
