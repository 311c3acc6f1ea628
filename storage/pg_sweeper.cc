#include "storage/pg_sweeper.h"

#include <algorithm>
#include <optional>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/pg_sweeper_leaves.h"
#include "storage/pg_sweeper_ledger.h"
#include "storage/pg_sweeper_traces.h"

namespace stepwell {
namespace {

// Of each sweep of all trials, once a minute: 0.1 % of a core.
constexpr absl::Duration kAuditMax = absl::Milliseconds(60);

// Days, deleted trials and bounds of all are for those who may be told of all.
absl::Status CheckProjects(const SweepRequest& request, const ProjectFilter& projects) {
  const bool names_one = request.target && (request.target->project || request.target->trial);
  if (names_one || projects.is_all()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "place: a sweep of all trials is for who may be told of all projects; name a project or a "
      "trial");
}

}  // namespace

absl::StatusOr<SweepResult> PgSweeper::Sweep(PgConnection& connection, std::int64_t owner_epoch,
                                             const SweepRequest& request,
                                             const ProjectFilter& projects) {
  STEPWELL_RETURN_IF_ERROR(CheckProjects(request, projects));
  const std::int64_t now_us =
      request.now_us != 0 ? request.now_us : absl::ToUnixMicros(absl::Now());
  SweepResult result;
  SweepErrors errors(connection, result);
  std::optional<FoundPlace> place;
  if (request.target) {
    STEPWELL_ASSIGN_OR_RETURN(place, FindPlace(connection, *request.target, projects));
  } else {
    SweepPace pace(request.duration_max);
    PgLeafSweeper leaves(connection, owner_epoch, pace, result);
    STEPWELL_RETURN_IF_ERROR(errors.Take(leaves.Run(now_us), "leaves"));
    result.more = pace.stopped();
    STEPWELL_RETURN_IF_ERROR(
        errors.Take(Bury(connection, owner_epoch, request.duration_max, result), "deleted trials"));
  }
  SweepPace pace(request.duration_max);
  PgBoundSweeper bounds(connection, owner_epoch, pace, result, bounds_);
  STEPWELL_RETURN_IF_ERROR(errors.Take(bounds.Run(place ? &*place : nullptr), "bounds"));
  SweepPace trace_pace(request.duration_max);
  PgTraceSweeper traces(connection, owner_epoch, trace_pace, result);
  STEPWELL_RETURN_IF_ERROR(errors.Take(traces.Run(place ? &*place : nullptr), "traces"));
  STEPWELL_RETURN_IF_ERROR(
      errors.Take(Audit(connection, owner_epoch, request, place ? &*place : nullptr, result),
                  "audit of the ledger"));
  result.removed.Sort();
  return result;
}

absl::Status PgSweeper::Audit(PgConnection& connection, std::int64_t owner_epoch,
                              const SweepRequest& request, const FoundPlace* place,
                              SweepResult& result) {
  // A trial that somebody asks for is gone over to its end, call by call; all of them in a long round,
  // some at each sweep.
  const bool one_trial = place != nullptr && place->trial_id != 0;
  if (place != nullptr && !one_trial) return absl::OkStatus();
  SweepPace pace(one_trial ? request.duration_max : std::min(request.duration_max, kAuditMax));
  PgLedgerAudit audit(connection, owner_epoch, pace);
  if (!one_trial) {
    STEPWELL_ASSIGN_OR_RETURN(audited_, audit.Run(audited_, 0));
    return absl::OkStatus();
  }
  if (of_place_.trial_id != place->trial_id) of_place_ = AuditPlace();
  STEPWELL_ASSIGN_OR_RETURN(of_place_, audit.Run(of_place_, place->trial_id));
  if (of_place_.trial_id != 0) result.more = result.advanced = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> PgSweeper::BuryTrial(PgConnection& connection, std::int64_t owner_epoch,
                                          TrialId trial_id, absl::Duration duration_max) {
  SweepPace pace(duration_max);
  return PgTrialSweeper(connection, owner_epoch, pace, buried_).Clear(trial_id);
}

absl::Status PgSweeper::Bury(PgConnection& connection, std::int64_t owner_epoch,
                             absl::Duration duration_max, SweepResult& result) {
  SweepPace pace(duration_max);
  PgTrialSweeper trials(connection, owner_epoch, pace, buried_);
  SweepErrors errors(connection, result);
  const absl::Status buried = trials.Run(errors);
  result.deleted_row_count = trials.row_count();
  result.advanced = result.advanced || trials.advanced();
  result.more = result.more || pace.stopped();
  return buried;
}

}  // namespace stepwell
