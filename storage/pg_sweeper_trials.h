// PgTrialSweeper: takes away what deleted trials left: rows of leaves and of recent, then traces, series, gaps,
// origins and attempts, in slices, each a transaction. Its writers and itself stay as a tombstone. Killed
// anywhere, the next one goes on where lines of the ledger and attempts are left. Confined to one thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_ledger.h"

namespace stepwell {

class PgTrialSweeper {
 public:
  // Both outlive this.
  PgTrialSweeper(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace)
      : connection_(connection), owner_epoch_(owner_epoch), pace_(pace) {}

  // All deleted trials; one that fails is told to `errors`.
  absl::Status Run(SweepErrors& errors);
  // One. True: nothing is left.
  absl::StatusOr<bool> Clear(TrialId trial_id);
  std::int64_t row_count() const { return row_count_; }
  // Came further: rows, or lines of the ledger, or a burial ended.
  bool advanced() const { return advanced_; }

 private:
  // Deletes all of the trial's rows of `table`, along its index; false when the time is over. A table
  // that is not there holds none.
  absl::StatusOr<bool> Drain(TrialId trial_id, const SqlText& table, const char* order);
  absl::StatusOr<bool> DrainLeaves(TrialId trial_id);

  PgConnection& connection_;
  const std::int64_t owner_epoch_;
  SweepPace& pace_;
  std::int64_t row_count_ = 0;
  bool advanced_ = false;
};

}  // namespace stepwell
