// PgMerger: moves ripe recent rows into metrics and ticks, and makes their rollups (PgRollupJoiner); when
// nothing is ripe, it puts rollups of days that are over into their leaves (PgRollupRing). The
// rows of one writer, tick group and received day are one stretch of work, or where a pin or ticks far apart made very
// many of them several, oldest first; what is too much for one
// call is merged in slices of its series, which share the merged rows of ticks. Between slices the
// rest stays readable where it is.
// After any failure it forgets where it was and picks anew: what is merged already is merged. What fails
// again and again waits aside (MergeAside), where it can be read, and holds up nobody else.
// Confined to the folder's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/book_changes.h"
#include "storage/fold_store.h"
#include "storage/leaf_growth.h"
#include "storage/merge_aside.h"
#include "storage/merge_classes.h"
#include "storage/pg_leaves.h"
#include "storage/pg_link.h"
#include "storage/pg_rollup_joiner.h"
#include "storage/pg_rollup_ring.h"
#include "storage/recent_ring.h"
#include "storage/row_place.h"
#include "storage/series_groups.h"
#include "storage/usage_ledger.h"

namespace stepwell {

class PgMerger {
 public:
  // All seven outlive this. `book_changes` is told what changes books; null = nobody remembers any.
  PgMerger(PgLink& link, RecentRing& ring, PgRollupRing& rollup_ring, SeriesGroups& groups,
           PgLeaves& leaves, LeafGrowth& growth, BookChanges* book_changes)
      : link_(link),
        ring_(ring),
        rollup_ring_(rollup_ring),
        groups_(groups),
        leaves_(leaves),
        growth_(growth),
        book_changes_(book_changes) {}

  // As FoldStore::Merge.
  absl::StatusOr<MergeResult> Merge(std::int64_t owner_epoch, const MergeLimits& limits);
  // Where it was, because it failed or another master may have gone on.
  void Forget();
  // Some series of a stretch of the trial are merged, and others not yet.
  bool IsWithin(TrialId trial_id) const {
    return work_.has_value() && std::get<TrialId>(work_->key) == trial_id;
  }

 private:
  // A stretch whose merge has begun: its rows of ticks are chosen once, its series go in slices.
  struct Work {
    StretchKey key;
    std::vector<RecentTicksRow> ticks;
    // False: these are the oldest, others wait for a work of their own.
    bool is_whole = true;
    std::vector<SeriesNo> series;
    std::size_t series_done = 0;
    // As caps were when the work began.
    MergeClasses classes;
    PgRollupJoiner rollups;
    // Of the merged rows of ticks; empty before the first slice.
    std::vector<std::int64_t> tick_nos;
  };
  struct Slice;  // of a Work, inside one transaction

  absl::Status Pick(PgConnection& connection, const MergeLimits& limits);
  // Nothing is left to be merged: rollups of days that are over go into their leaves.
  absl::StatusOr<MergeResult> MoveRollups(PgConnection& connection, std::int64_t owner_epoch);
  absl::Status Run(PgConnection& connection, std::int64_t owner_epoch, const MergeLimits& limits,
                   MergeResult& result);
  absl::Status MergeTrial(PgConnection& connection, const MergeLimits& limits, const KeepPlan& plan,
                          MergeResult& result);
  absl::Status EnsureLeaves(PgConnection& connection, const KeepPlan& plan,
                            std::int32_t received_day);
  absl::StatusOr<Work> Begin(PgConnection& connection, const StretchKey& key,
                             const MergeLimits& limits, const KeepPlan& plan);
  // What becomes of the work's rollups; the series of narrow ones that are joined become part of it.
  absl::Status PlanRollupsOf(PgConnection& connection, Work& work);
  void NoteRollups(const Work& work);
  absl::Status TakeFailure(const absl::Status& status, const StretchKey& at, bool joins);
  absl::Status MergeSlice(PgConnection& connection, std::size_t rows_max, MergeResult& result);
  absl::StatusOr<Slice> ReadSlice(PgConnection& connection, std::size_t rows_max);
  absl::Status CopySlice(PgConnection& connection, const Slice& slice, UsageLedger& usage,
                         MergeResult& result);
  absl::Status DeleteSlice(PgConnection& connection, const Slice& slice, UsageLedger& usage);
  // The trial was deleted: what is picked of it is nobody's any more.
  void DropTrial(TrialId trial_id);

  PgLink& link_;
  RecentRing& ring_;
  PgRollupRing& rollup_ring_;
  SeriesGroups& groups_;
  PgLeaves& leaves_;
  LeafGrowth& growth_;
  BookChanges* const book_changes_;
  std::deque<StretchKey> picked_;
  // More may be ripe than the last pick had room for.
  bool picked_in_part_ = false;
  std::optional<Work> work_;
  MergeAside aside_;
  // Beside these are rollups that cannot be decoded: theirs are not joined.
  std::set<StretchKey> unjoined_;
  // Everything that was received before this day is ripe; as of the call under way.
  std::int32_t first_open_day_ = 0;
  // In the transaction under way.
  std::int64_t rows_done_ = 0;
  // A leaf was not there in the last call.
  bool leaf_was_gone_ = false;
};

}  // namespace stepwell
