#include "server/chunk_scratch.h"

#include <algorithm>

namespace stepwell {
namespace {

// Of an arena's blocks: below what malloc asks the kernel for each time.
constexpr std::size_t kBlockMin = 1024;
constexpr std::size_t kBlockMax = 64 << 10;
// An arena keeps records of 8 bytes at its blocks' ends, which lie where a block's size says.
constexpr std::size_t kAlignment = 16;
// Of each of the journal's two, from one chunk to the next; a chunk of 1000 samples takes an eighth.
constexpr std::size_t kKeptBytesMax = 64 << 10;

}  // namespace

google::protobuf::ArenaOptions ChunkScratch::ArenaFor(std::size_t body_bytes) {
  const std::size_t bytes =
      std::clamp(2 * body_bytes, kBlockMin, kBlockMax) / kAlignment * kAlignment;
  if (block_bytes_ < bytes) {
    block_ = std::make_unique_for_overwrite<char[]>(bytes);
    block_bytes_ = bytes;
  }
  google::protobuf::ArenaOptions options;
  options.initial_block = block_.get();
  options.initial_block_size = block_bytes_;
  options.start_block_size = bytes;
  options.max_block_size = kBlockMax;
  return options;
}

void ChunkScratch::KeepLittle() {
  if (journal_.body.capacity() > kKeptBytesMax) {
    // An empty string that is moved there leaves it its memory.
    journal_.body.clear();
    journal_.body.shrink_to_fit();
  }
  if (journal_.scaled.integers.capacity() * sizeof(std::int64_t) > kKeptBytesMax) {
    journal_.scaled = ScaledValues();
  }
}

}  // namespace stepwell
