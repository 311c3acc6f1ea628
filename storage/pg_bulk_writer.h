// PgBulkWriter: the rows of one trial that a fold brings straight into leaves, with their rollups, as a merge
// would have made them of recent rows: encoded once, never read back. Stands between PgFolder and MergeCopy.
// Confined to the folder's thread.
//
// What holds at each commit is what PgRollupJoiner tells. What must hold beside it: no reader of the trial looks
// at heads of before and at rows of after, for a row in a leaf does not say of which fold it is
// (FoldStore::FoldBulk); and no merge is in the middle of the trial's series, whose narrow rollups this may join.
//
// Order of locks: the trial's classes, rows of rollups, lines of the ledger, as a merge takes them; what the fold
// locks of its own comes after.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "storage/fold_plan.h"
#include "storage/keep_plan.h"
#include "storage/leaf_growth.h"
#include "storage/merge_classes.h"
#include "storage/pg_connection.h"
#include "storage/pg_leaves.h"
#include "storage/pg_merge_copy.h"
#include "storage/pg_narrow_look.h"
#include "storage/pg_rollup_joiner.h"
#include "storage/pg_rollup_ring.h"
#include "storage/series_groups.h"
#include "storage/usage_ledger.h"

namespace stepwell {

// A stretch and where it goes.
struct BulkWork {
  WriterNo writer_no{};
  BulkStretch bulk;
  std::vector<std::int64_t> tick_nos;  // one per stretch
};

class PgBulkWriter {
 public:
  // All four outlive this.
  PgBulkWriter(PgRollupRing& rollup_ring, SeriesGroups& groups, PgLeaves& leaves,
               LeafGrowth& growth)
      : rollup_ring_(rollup_ring), groups_(groups), leaves_(leaves), growth_(growth) {}

  // Before the transaction, for leaves are attached in transactions of their own: the leaves of the trial's
  // classes. The answer is for Write.
  absl::StatusOr<KeepPlan> Prepare(PgConnection& connection, TrialId trial_id,
                                   const std::vector<BulkWork>& works);
  // Inside it. Of days before `first_open_day` nothing waits to be joined. kUnavailable where caps or sweeps
  // changed what was prepared. REQUIRES: SeriesGroups knows the series.
  absl::Status Write(PgConnection& connection, TrialId trial_id, const KeepPlan& plan,
                     const std::vector<BulkWork>& works, std::int32_t first_open_day,
                     UsageLedger& usage);
  // After any failure: what is there is asked anew.
  void Forget();

 private:
  // A work with what its rows need.
  struct Laid {
    const BulkWork* work = nullptr;
    MergeClasses classes;
    PgRollupJoiner rollups;
  };
  using Looks = std::map<std::int32_t, PgNarrowLook>;  // by received day
  static absl::StatusOr<Looks> LookAround(PgConnection& connection, TrialId trial_id,
                                          const std::vector<BulkWork>& works);
  absl::StatusOr<Laid> Lay(PgConnection& connection, TrialId trial_id, const KeepPlan& plan,
                           const BulkWork& work, std::int32_t first_open_day, const Looks& looks,
                           UsageLedger& usage);
  void AddTo(MergeCopy& copy, TrialId trial_id, Laid& laid);

  PgRollupRing& rollup_ring_;
  SeriesGroups& groups_;
  PgLeaves& leaves_;
  LeafGrowth& growth_;
};

}  // namespace stepwell
