// TrialBook: the bookkeeping of one trial at one moment, as answers need it that hold no rows. A value,
// shared by all who look at it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "storage/read_store.h"

namespace stepwell {

// Trials with more series have a book without them: they are asked for what is chosen of them.
inline constexpr std::int32_t kBookSeriesMax = 10'000;

struct TrialBook {
  TrialRecord record = {};
  std::vector<WriterRecord> writers = {};
  std::vector<UsageRecord> usage = {};
  // By GapFilter{}.
  GapList gaps = {};
  // Null beyond kBookSeriesMax, and where they are too large to be remembered.
  std::shared_ptr<const std::vector<Series>> series = {};
};

// In one round trip where the series are remembered. kNotFound.
absl::StatusOr<std::shared_ptr<const TrialBook>> ReadBookOf(ReadSnapshot& snapshot,
                                                            TrialId trial_id, const ListRoom& room);

// About what it takes, with its series: it keeps them alive where nothing else does.
std::size_t BytesOf(const TrialBook& book);

}  // namespace stepwell
