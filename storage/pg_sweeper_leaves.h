// PgLeafSweeper: keeps ages. Leaves whose age has passed are given up in the ledger first, and emptied by
// TRUNCATE afterwards; old empty ones are dropped, so that the catalogue does not grow for ever.
//
// Invariants:
//   A. Whoever's snapshot has a line of the ledger that says that rows are in a leaf, finds them there.
//   B. What a cap removes is in a gap with its cause once: lines, gaps and swept_leaves move in one
//      transaction, so that between two of them, where a sweep may be killed, each line is as it was or told.
//   C. The ledger counts what is there and not given up: a line that is not there says as much as one of
//      zeros, to readers, bounds, audits and burials alike.
//   D. Nobody waits for a sweep longer than for one transaction of 500 lines, or for 50 ms of a lock of a leaf;
//      a sweep waits 20 ms at most for a line or a leaf that somebody holds, and comes again.
//   E. What a leaf's sweep writes grows with its trials, by a gap each, and where only samples go, not with the lines
//      that these have.
//
// TRUNCATE heeds no snapshot, so
//   1. transactions give up the leaf's lines, note the gaps, and remember the leaf and their own number in
//      swept_leaves. Where samples alone are over their age, the leaf's mark moves (samples_through): the ledger
//      as everybody reads it, the view stepwell.usage, has a row_count of 0 for lines of trials up to it, and
//      their sample_count as removed_sample_count; the lines themselves (usage_lines) are not touched. Where
//      rollups are over theirs, too, the line is deleted: nothing is left that it could tell.
//   2. once no snapshot is left that is older than that number, and under the leaf's lock the ledger still
//      says that nothing is there and no row of recent is of its day, a transaction of its own truncates
//      it. A merge goes in slices: rows of a later one need the ticks that the first has written.
// A snapshot of before 1 has both, lines and rows, until it ends; one of after 1 never looks into the
// leaf. Rows that are merged into it between the two bring lines of their own, and 1 begins again.
// Killed anywhere, the next sweep goes on: 1 with the lines that are left, 2 with swept_leaves, which alone
// knows of a leaf whose lines are all deleted.
//
// No line may change between being told as a gap and being passed by the mark. Whoever adds samples to it has
// written them into the leaf first, in the same transaction: so a mark moves under a SHARE lock of the leaf, which
// waits for these, and they for it. What they write behind it finds the mark, and begins the line anew
// (after_sweep): such lines are given up one by one, as those of a trial that has too many for one transaction.
// The mark goes with the leaf, once no line needs it.
//
// Locks: 1 takes the leaf against merges, or row locks of the ledger, those of lines to delete in no order, so that a
// merge may hold one and wait for another: it is the sweep that gives way. 2 and the drops hold a leaf (a drop: its
// parent, too) for some milliseconds. All of them wait 20 ms at most; what cannot be had is left for a later sweep.
// Confined to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/caps_store.h"
#include "storage/leaf_sweep.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_ledger.h"

namespace stepwell {

class PgLeafSweeper {
 public:
  // All outlive this.
  PgLeafSweeper(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace,
                SweepResult& result)
      : connection_(connection),
        owner_epoch_(owner_epoch),
        pace_(pace),
        result_(result),
        errors_(connection, result) {}

  absl::Status Run(std::int64_t now_us);

 private:
  absl::StatusOr<LeafSweep> Plan(std::int64_t now_us);
  absl::StatusOr<std::vector<SweptLeaf>> ReadSwept();
  // Samples, or rollups with them: no class keeps samples longer.
  enum class Part { kSamples, kAll };
  // Whether nothing was left to wait for: a merge, or somebody who holds a line.
  absl::StatusOr<bool> GiveUp(const LeafKey& key, Part part);
  // Steps until one says that there is no more to do; false where one gave way to somebody.
  absl::StatusOr<bool> UntilDone(const std::function<absl::StatusOr<bool>()>& step);
  // Each of them one transaction, or two; whether there may be more lines.
  absl::StatusOr<bool> GiveUpLines(const LeafKey& key);
  absl::StatusOr<bool> MarkSamples(const LeafKey& key);
  // One by one: those that came behind the mark, and those of `trial_id`.
  absl::StatusOr<bool> GiveUpSamples(const LeafKey& key, std::int64_t trial_id);
  // What was merged into it can be seen from here on, and nobody merges into it until the transaction ends. False
  // where it is not there.
  absl::StatusOr<bool> HoldOffMerges(const LeafKey& key);
  // Rollups that wait to be joined go with the others of their leaf; whether none of them waits now.
  absl::StatusOr<bool> TakeInRollups(const LeafKey& key);
  absl::Status EmptyAll();
  absl::Status Empty(const SweptLeaf& leaf);
  // Names of the tables to be emptied.
  absl::StatusOr<std::vector<SqlText>> Existing(const SweptLeaf& leaf);
  enum class Truncation { kDone, kHasLines, kMergeUnderWay };
  absl::StatusOr<Truncation> Truncate(const SweptLeaf& leaf);
  // Rows that were received on its day are not merged yet: a merge may have written some of them.
  absl::StatusOr<bool> MayGetRows(const LeafKey& key);
  absl::Status DropAll(const std::vector<NamedLeaf>& leaves);
  absl::Status Drop(const NamedLeaf& leaf);

  PgConnection& connection_;
  const std::int64_t owner_epoch_;
  SweepPace& pace_;
  SweepResult& result_;
  SweepErrors errors_;
};

}  // namespace stepwell
