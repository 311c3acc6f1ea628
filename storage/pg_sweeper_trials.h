// PgTrialSweeper: takes away what deleted trials left: rows of recent and of leaves, then traces, series, gaps,
// origins and attempts, in slices, each a transaction. Its writers and itself stay as a tombstone. Killed
// anywhere, the next one goes on with what it finds. Lines of the ledger lead to leaves, and go with their
// rows; what lies in a leaf that waits to be emptied may have no line any more, so that these are all looked
// into. Where nothing is, it reads and writes nothing; how far it came in such leaves is remembered, so that
// calls however short come to an end, while a snapshot keeps many leaves waiting, too. Confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "storage/leaf_sweep.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_ledger.h"

namespace stepwell {

// Of deleted trials: up to which leaf, in the order of keys, nothing of theirs lies in any. Whoever writes samples
// of a trial holds its row and sees that it is not deleted, and rollups that wait were taken away before leaves:
// nothing comes there any more. Lost with the process: it only saves work.
using BuriedUpTo = std::map<TrialId, LeafKey>;

class PgTrialSweeper {
 public:
  // All outlive this.
  PgTrialSweeper(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace,
                 BuriedUpTo& up_to)
      : connection_(connection), owner_epoch_(owner_epoch), pace_(pace), up_to_(up_to) {}

  // All deleted trials; one that fails is told to `errors`.
  absl::Status Run(SweepErrors& errors);
  // One. True: nothing is left.
  absl::StatusOr<bool> Clear(TrialId trial_id);
  std::int64_t row_count() const { return row_count_; }
  // Came further: rows or lines of the ledger went, a leaf was looked into that no later call looks into
  // again, or a burial ended. Each of them happens so many times and no more.
  bool advanced() const { return advanced_; }

 private:
  // Deletes all of the trial's rows of `table`, which has no partitions, along its index; false when the time is
  // over. A table that is not there holds none.
  absl::StatusOr<bool> Drain(TrialId trial_id, const SqlText& table, const char* order);
  absl::StatusOr<bool> DrainLeaves(TrialId trial_id);
  absl::StatusOr<bool> DrainLeaf(TrialId trial_id, const LeafKey& leaf);
  absl::Status DropLines(TrialId trial_id, const LeafKey& leaf);
  // Not before a first step: to find out what is left may have taken all the time.
  bool IsOver() { return advanced_ && pace_.IsOver(); }

  PgConnection& connection_;
  const std::int64_t owner_epoch_;
  SweepPace& pace_;
  BuriedUpTo& up_to_;
  std::int64_t row_count_ = 0;
  bool advanced_ = false;
};

}  // namespace stepwell
