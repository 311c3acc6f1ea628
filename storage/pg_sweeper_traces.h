// PgTraceSweeper: keeps the caps of traces: those whose age has passed go, the oldest of a trial that is over
// its bytes, and uploads that nobody has gone on with for a day. First they are given up, with the ledger,
// each in a transaction; then their parts go in slices. Killed anywhere, the next one goes on. Beside
// PgBoundSweeper. Confined to one thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "storage/caps.h"
#include "storage/caps_store.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_ledger.h"

namespace stepwell {

class PgTraceSweeper {
 public:
  // All outlive this.
  PgTraceSweeper(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace,
                 SweepResult& result)
      : connection_(connection), owner_epoch_(owner_epoch), pace_(pace), result_(result) {}

  // Only trials of `place`; null = all.
  absl::Status Run(const FoundPlace* place);
  // All traces of a deleted trial. True: nothing is left.
  absl::StatusOr<bool> ClearTrial(TrialId trial_id);

 private:
  absl::Status SweepTrial(TrialId trial_id, const EffectiveCaps& caps);
  absl::Status GiveUpAbandoned();
  absl::Status GiveUp(TrialId trial_id, std::int32_t trace_no, const char* reason);
  // Of one trial, or of all: 0. False: the time is over.
  absl::StatusOr<bool> Clear(TrialId trial_id);

  PgConnection& connection_;
  const std::int64_t owner_epoch_;
  SweepPace& pace_;
  SweepResult& result_;
};

}  // namespace stepwell
