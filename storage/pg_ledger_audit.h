// PgLedgerAudit: holds the ledger against the rows themselves, so that what vanished from the database
// behind the master's back (a DELETE by hand, a leaf that was dropped, a lost file) is told by bookkeeping
// as everything else is: it leaves the ledger, and a gap of cause RESTORED says how much it was. One day of
// one trial at a time, each in a transaction of its own, beside whatever folds and merges do. A part of
// PgSweeper. Confined to one thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_ledger.h"

namespace stepwell {

// Lines of the ledger of one trial, day and class.
struct AuditPlace {
  std::int64_t trial_id = 0;
  std::int32_t received_day = 0;
  std::int16_t keep_class = -1;
};

class PgLedgerAudit {
 public:
  // All outlive this.
  PgLedgerAudit(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace)
      : connection_(connection), owner_epoch_(owner_epoch), pace_(pace) {}

  // What comes after `from`, of one trial or (0) of all, until the pace is over. Where to go on; the
  // beginning once the end was reached.
  absl::StatusOr<AuditPlace> Run(AuditPlace from, std::int64_t only_trial_id);
  // Samples found to have vanished.
  std::int64_t vanished_count() const { return vanished_count_; }

 private:
  absl::Status Check(const AuditPlace& place);

  PgConnection& connection_;
  const std::int64_t owner_epoch_;
  SweepPace& pace_;
  std::int64_t vanished_count_ = 0;
};

}  // namespace stepwell
