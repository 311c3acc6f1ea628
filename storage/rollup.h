// Rollup: the statistics of samples per bucket of 10 s or 60 s, so that a chart of days reads no
// samples and a peak outlives the raw rows. Made by merges from the ticks of one stretch; several
// rollups may speak of one bucket (writers, late samples), and whoever reads them adds them up: a sample
// is counted by exactly one rollup of each step. A core; pure functions.
//
//   const RollupGrid grid = RollUpTicks(times_us, batches, /*step_seconds=*/10);
//   const RollupColumn column = RollUpColumn(grid, times_us, values, scaled, presence);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/model.h"
#include "storage/scaled_column.h"

namespace stepwell {

// Widths of buckets, in seconds.
inline constexpr std::array<std::int32_t, 2> kRollupSteps = {10, 60};

// Number of the bucket that holds `time_us`: time / step, rounded down.
std::int64_t RollupBucketOf(std::int64_t time_us, std::int32_t step_seconds);

// The buckets that a stretch of ticks touches; all vectors have one length. What the series on these
// ticks share.
struct RollupGrid {
  std::int32_t step_seconds = 0;
  std::vector<std::int64_t> buckets;  // ascending, each once
  std::vector<std::int64_t> tick_counts;
  std::vector<std::int64_t> last_times_us;
  // Least and greatest batch of the bucket's ticks; -1 = none has one.
  std::vector<std::int64_t> first_batches;
  std::vector<std::int64_t> last_batches;
};

// One series on a grid. All other vectors have an element per bucket that has a sample.
struct RollupColumn {
  std::vector<std::uint8_t> presence;  // one per bucket of the grid: 1 = has a sample; empty = all
  std::vector<std::int64_t> counts;    // samples, NaN among them; empty = the grid's tick_counts
  std::vector<std::int64_t> nan_counts;  // empty = no NaN
  // Of the samples that are not NaN; 0 where a bucket has none.
  std::vector<double> mins;
  std::vector<double> maxs;
  // Of values that are integers under a common divisor (ValueScale) the exact sum, rounded once.
  std::vector<double> sums;
  std::vector<double> lasts;
  // Times of `lasts`, by how much they lie before the grid's last_times_us; empty = not at all.
  std::vector<std::int64_t> last_lags_us;
};

// One series on a grid, with its name and the times of its samples: of the first and the last, or a
// little more.
struct SeriesRollup {
  SeriesNo series_no{};
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  RollupColumn column;
};

// A grid with series on it; what becomes one row of rollup_ticks and its rows of rollups.
struct Rollup {
  RollupGrid grid;
  // Of the ticks.
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::vector<SeriesRollup> series;
};

// REQUIRES: times ascend; as many batches.
RollupGrid RollUpTicks(std::span<const std::int64_t> times_us,
                       std::span<const std::int32_t> batches, std::int32_t step_seconds);
// `presence` as in TickColumn: one per tick, or empty = all; `values` one per sample, `scaled` of them.
// REQUIRES: `grid` is of `times_us`; at least one sample.
RollupColumn RollUpColumn(const RollupGrid& grid, std::span<const std::int64_t> times_us,
                          std::span<const double> values, const ScaledColumn& scaled,
                          std::span<const std::uint8_t> presence);
// Takes out of a column, whose vectors are all there, what says nothing beyond the grid.
void ShortenColumn(const RollupGrid& grid, RollupColumn& column);

}  // namespace stepwell
