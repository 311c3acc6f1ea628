// HeadChunk: one committed chunk, decoded, as heads hold it. Shared by all who look at it; a value that
// never changes once it is in heads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/model.h"

namespace stepwell {

struct HeadChunk {
  TrialId trial_id{};
  WriterNo writer_no{};
  std::int32_t attempt = 0;
  std::uint64_t sequence = 0;
  // Of a range of sequences without data; 0 = the same.
  std::uint64_t first_sequence = 0;
  std::int64_t received_time_us = 0;
  std::vector<TickTable> tables;
  std::int64_t sample_count = 0;
  std::int64_t bytes = 0;  // memory it stands for
  // Holes that the fold of this chunk declares.
  std::vector<Gap> gaps = {};
};
using HeadChunkPtr = std::shared_ptr<const HeadChunk>;

inline std::uint64_t FirstSequence(const HeadChunk& chunk) {
  return chunk.first_sequence == 0 ? chunk.sequence : chunk.first_sequence;
}

// The oldest sample's time; INT64_MAX without samples. O(ticks).
inline std::int64_t OldestTime(const HeadChunk& chunk) {
  std::int64_t oldest_us = INT64_MAX;
  for (const TickTable& table : chunk.tables) {
    for (const std::int64_t time_us : table.times_us) oldest_us = std::min(oldest_us, time_us);
  }
  return oldest_us;
}

}  // namespace stepwell
