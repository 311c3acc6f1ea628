// BatchesAround: between which training batches of a writer a stretch of time lies. Ticks are shown to it in
// any order, those of rows as those of heads. A core; values and pure functions.
//
//   BatchesAround around;
//   NoteTicks(ticks->times_us, ticks->batches, {writer, gap.first_time_us, gap.last_time_us}, around);
//   if (around.before) ... around.before->batch
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace stepwell {

// [first, last], of one writer.
struct WriterStretch {
  WriterNo writer_no{};
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;

  bool operator==(const WriterStretch&) const = default;
};

// A tick that has a batch.
struct TickBatch {
  std::int64_t time_us = 0;
  std::int32_t batch = 0;

  bool operator==(const TickBatch&) const = default;
};

struct BatchesAround {
  // The newest at or before the stretch's first time; no value = none was shown.
  std::optional<TickBatch> before = {};
  // The oldest at or after its last time.
  std::optional<TickBatch> after = {};

  bool operator==(const BatchesAround&) const = default;
};

// Ticks of the stretch's writer, those without batch (-1) are passed over. Of two at one time the one that
// leaves the stretch wider counts. O(ticks). REQUIRES: as many times as batches.
void NoteTicks(std::span<const std::int64_t> times_us, std::span<const std::int32_t> batches,
               const WriterStretch& stretch, BatchesAround& around);

}  // namespace stepwell
