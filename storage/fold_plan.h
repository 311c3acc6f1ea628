// FoldPlan: what a fold writes, without SQL: the tables of one writer, joined by tick group and
// received day, sorted by time, cut and encoded, as rows of recent or, where they come in bulk, as merged rows
// with their rollups. A core; PgFolder copies the plan. Pure functions.
//
//   STEPWELL_ASSIGN_OR_RETURN(FoldPlan plan, PlanFold(fold, kBulkTicks));
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/encoded_ticks.h"
#include "storage/fold_store.h"
#include "storage/merge_plan.h"

namespace stepwell {

struct PlannedTicks {
  std::int32_t received_day = 0;  // days since 1970
  // Of the oldest part that fed the tick group on that day.
  std::int64_t received_time_us = 0;
  EncodedTicks ticks;
};

// With so many ticks of a writer, tick group and received day a fold brings what is worth rows of its own in a
// leaf, as long as a merge's of 3600 would be, more or less.
inline constexpr std::size_t kBulkTicks = 1024;
// All waits in recent.
inline constexpr std::size_t kNoBulk = std::numeric_limits<std::size_t>::max();

// What goes into a leaf at once.
struct BulkStretch {
  std::int32_t received_day = 0;
  std::vector<MergedStretch> stretches;  // at least one; each has columns
};

struct FoldPlan {
  // Both ordered by day, tick group, time.
  std::vector<PlannedTicks> recent;
  std::vector<BulkStretch> bulk;
};

// The day (UTC) of a time.
std::int32_t DayOf(std::int64_t time_us);

// Whether something of it comes in bulk, by kBulkTicks. Looks at counts alone.
bool HoldsBulk(const WriterFold& fold);

// `bulk_ticks`: so many are bulk. kInternal when a table's vectors do not fit each other.
absl::StatusOr<FoldPlan> PlanFold(const WriterFold& fold, std::size_t bulk_ticks);

}  // namespace stepwell
