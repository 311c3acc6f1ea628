// PgSweeper: one sweep after the other. It goes over leaves whose age has passed, then over deleted
// trials, then over trials with bounds of bytes or samples, then over traces, then it holds some of the ledger
// against its rows, in small transactions, and each stops soon
// when its time is over; the next call goes on. What fails in one place holds up no other. What it remembers between calls only saves work. Stands between
// PgCapsStore and the parts that do the work. Confined to one thread at a time.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "storage/caps_store.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_connection.h"
#include "storage/pg_ledger_audit.h"
#include "storage/pg_sweeper_bounds.h"
#include "storage/pg_sweeper_trials.h"

namespace stepwell {

class PgSweeper {
 public:
  // As CapsStore::Sweep.
  absl::StatusOr<SweepResult> Sweep(PgConnection& connection, std::int64_t owner_epoch,
                                    const SweepRequest& request, const ProjectFilter& projects);
  // What is left of one deleted trial. True: nothing is.
  absl::StatusOr<bool> BuryTrial(PgConnection& connection, std::int64_t owner_epoch,
                                 TrialId trial_id, absl::Duration duration_max);

 private:
  absl::Status Bury(PgConnection& connection, std::int64_t owner_epoch, absl::Duration duration_max,
                    SweepResult& result);

  absl::Status Audit(PgConnection& connection, std::int64_t owner_epoch,
                     const SweepRequest& request, const FoundPlace* place, SweepResult& result);

  BuriedUpTo buried_;
  BoundMemory bounds_;
  AuditPlace audited_;   // in the round over all trials
  AuditPlace of_place_;  // in that of a place alone
};

}  // namespace stepwell
