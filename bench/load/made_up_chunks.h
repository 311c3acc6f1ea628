// MadeUpChunks: chunks of one writer that cost next to nothing to make. Confined to one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/load/load_stream.h"

namespace stepwell::bench {

// What a writer sends: one tick group with `series_count` columns of `tick_count` ticks per chunk.
struct ChunkShape {
  int series_count = 25;
  int tick_count = 40;
  std::int64_t tick_interval_us = 1'000'000;
};

class MadeUpChunks {
 public:
  MadeUpChunks(ChunkShape shape, int seed);
  std::vector<v1::Definition> definitions() const;
  SealedBody Next();
  // Of all that Next gave.
  std::int64_t sample_count() const {
    return chunk_count_ * shape_.series_count * shape_.tick_count;
  }

 private:
  const ChunkShape shape_;
  std::int64_t chunk_count_ = 0;
  std::int64_t next_time_us_;
  std::uint64_t random_;
  std::vector<double> last_;
};

}  // namespace stepwell::bench
