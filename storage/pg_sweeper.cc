#include "storage/pg_sweeper.h"

#include <optional>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/pg_sweeper_leaves.h"
#include "storage/pg_sweeper_ledger.h"
#include "storage/pg_sweeper_trials.h"

namespace stepwell {

absl::StatusOr<SweepResult> PgSweeper::Sweep(PgConnection& connection, std::int64_t owner_epoch,
                                             const SweepRequest& request) {
  const std::int64_t now_us =
      request.now_us != 0 ? request.now_us : absl::ToUnixMicros(absl::Now());
  SweepPace pace(absl::Now() + request.duration_max);
  SweepResult result;
  std::optional<FoundPlace> place;
  if (request.target) {
    STEPWELL_ASSIGN_OR_RETURN(place, FindPlace(connection, *request.target));
  } else {
    PgLeafSweeper leaves(connection, owner_epoch, pace, result);
    STEPWELL_RETURN_IF_ERROR(leaves.Run(now_us));
  }
  PgBoundSweeper bounds(connection, owner_epoch, pace, result, bounds_);
  STEPWELL_RETURN_IF_ERROR(bounds.Run(place ? &*place : nullptr));
  if (!request.target) {
    PgTrialSweeper trials(connection, owner_epoch, pace);
    STEPWELL_RETURN_IF_ERROR(trials.Run());
    result.deleted_row_count = trials.row_count();
  }
  result.removed.Sort();
  result.more = pace.stopped();
  return result;
}

}  // namespace stepwell
