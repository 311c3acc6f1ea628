// Rows of rollups and rollup_ticks as a result holds them, decoded: the order of the columns stands
// here once. Functions for the reader and for PgRollupJoiner.
#pragma once

#include "absl/status/statusor.h"
#include "storage/pg_result.h"
#include "storage/rollup.h"
#include "storage/sql_text.h"

namespace stepwell {

// Columns of rollup_ticks that hold its grid, and the grid that stands at column `first`. kDataLoss
// where they contradict each other.
const SqlText& RollupGridColumns();
[[nodiscard]] absl::StatusOr<RollupGrid> RollupGridAt(const PgResult& result, int row, int first);

// Likewise of rollups; `grid` is that of its ticks.
const SqlText& RollupColumns();
[[nodiscard]] absl::StatusOr<RollupColumn> RollupColumnAt(const PgResult& result, int row,
                                                          int first, const RollupGrid& grid);

}  // namespace stepwell
