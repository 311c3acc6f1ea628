// RollupPlan: which rollups become one row. A merge brings stretches of ticks, whose rollups may be of
// a few buckets, and finds narrow rows beside them that earlier merges made; rows are joined until
// they are full. A core; pure.
//
// What holds: each new stretch is in one planned row, each narrow one in one at most; a row spans no
// more than kSlowStretchSpanUs, which readers count on; a bucket is written twice as a rule, three or
// four times where rows come with a bucket or two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/rollup.h"
#include "storage/rollup_stretches.h"

namespace stepwell {

// An hour of 10 s, six hours of 60 s: a row is full.
inline constexpr std::int64_t kRollupRowBuckets = 360;
// No join makes rows of more.
inline constexpr std::int64_t kRollupRowBucketsMax = 2 * kRollupRowBuckets;
// Rows below this many are joined again. Less than full: neighbours share a bucket.
inline constexpr std::int64_t kNarrowRollupBuckets = kRollupRowBuckets * 2 / 3;
// Rows of so few buckets are joined before they would be full, as soon as there are so many of them: a
// chart reads some dozens of rows at most beside the full ones.
inline constexpr std::int64_t kSmallRollupBuckets = 48;
inline constexpr std::size_t kSmallRollupsMax = 15;

struct RollupPiece {
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::int64_t first_bucket = 0;
  std::int64_t last_bucket = 0;
  std::int64_t bucket_count = 0;

  // REQUIRES: `grid` has a bucket.
  static RollupPiece Of(const RollupGrid& grid, std::int64_t first_time_us,
                        std::int64_t last_time_us);
};

// Of each stretch the one of this step of kRollupSteps.
std::vector<RollupPiece> RollupPiecesOf(std::span<const StretchRollups> stretches,
                                        std::size_t step_index);

// New stretches that follow each other, with narrow rows by their index, ascending.
struct PlannedRollup {
  std::size_t first_stretch = 0;
  std::size_t stretch_count = 0;
  std::vector<std::size_t> narrow;
};

// All of one step. In the order of time. REQUIRES: first times of `stretches` ascend.
std::vector<PlannedRollup> PlanRollups(std::span<const RollupPiece> stretches,
                                       std::span<const RollupPiece> narrow);

}  // namespace stepwell
