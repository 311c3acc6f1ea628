// RollupFold: a series' rollups to the statistics of buckets that each hold whole steps of them. A chart of many series
// is made of hundreds of thousands: some nanoseconds each. A core.
//
//   AddRollup(grid, column, fold);
#pragma once

#include "server/bucket_fold.h"
#include "storage/rollup.h"

namespace stepwell {

// Those outside of the fold's plan are left out. REQUIRES: the axis of time; the plan's start and width are whole steps
// of the grid; `column` is of it.
void AddRollup(const RollupGrid& grid, const RollupColumn& column, BucketFold& fold);

}  // namespace stepwell
