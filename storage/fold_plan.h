// FoldPlan: what a fold writes, without SQL: the tables of one writer, joined by tick group and
// received day, sorted by time, cut and encoded. A core; PgFolder copies the plan. Pure functions.
//
//   STEPWELL_ASSIGN_OR_RETURN(std::vector<PlannedTicks> plan, PlanFold(fold));
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/encoded_ticks.h"
#include "storage/fold_store.h"

namespace stepwell {

struct PlannedTicks {
  std::int32_t received_day = 0;  // days since 1970
  // Of the oldest part that fed the tick group on that day.
  std::int64_t received_time_us = 0;
  EncodedTicks ticks;
};

// The day (UTC) of a time.
std::int32_t DayOf(std::int64_t time_us);

// Ordered by day, tick group, time. kInternal when a table's vectors do not fit each other.
absl::StatusOr<std::vector<PlannedTicks>> PlanFold(const WriterFold& fold);

}  // namespace stepwell
