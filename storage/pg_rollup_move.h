// Moves rows of rollups that wait to be joined into their leaf as they are, each grid with all its rows in one
// statement: a row and its grid are always in the same place. The ledger counts them by class and day,
// wherever they are. Inside the caller's transaction.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "storage/leaf_sweep.h"
#include "storage/pg_connection.h"

namespace stepwell {

struct RollupMove {
  LeafKey leaf = {};
  TrialId trial_id{};  // 0 = all trials
  // As many grids as hold so many rows, and one at least (a writer's 10,000 series): 10 ms and 0.15 s.
  std::int64_t rows_max = 1000;
  // For others than the thread that merges: more rows may come to the grids of a merge that is in the
  // middle of its series.
  bool leaves_merges_alone = true;
};

// Grids moved; 0 = none is left that may be. The error has SQLSTATE 23514 where there is no such leaf.
absl::StatusOr<std::int64_t> MoveRollups(PgConnection& connection, const RollupMove& move);
// Some of the class and day wait.
absl::StatusOr<bool> RollupsWait(PgConnection& connection, const LeafKey& leaf);

}  // namespace stepwell
