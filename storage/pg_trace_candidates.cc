#include "storage/pg_trace_candidates.h"

#include <set>
#include <utility>

#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_trace_sql.h"
#include "storage/trace_store.h"

namespace stepwell {
namespace {

// The least bound of a field that is set somewhere, or is the product's; 0 = there is none.
std::int64_t LeastOf(const std::vector<PlacedCaps>& placed,
                     std::optional<std::int64_t> Caps::*field) {
  std::int64_t least = (kDefaultCaps.*field).value_or(0);
  for (const PlacedCaps& each : placed) {
    const std::int64_t value = (each.caps.*field).value_or(0);
    if (value > 0 && (least == 0 || value < least)) least = value;
  }
  return least;
}

}  // namespace

absl::StatusOr<std::vector<TraceTrial>> ListTraceTrials(PgConnection& connection,
                                                        const FoundPlace* place,
                                                        const ProjectFilter& projects,
                                                        const std::vector<PlacedCaps>& placed) {
  const std::int64_t trial_id = place == nullptr ? 0 : place->trial_id;
  const std::int64_t project_id = place == nullptr || trial_id != 0 ? 0 : place->project_id;
  std::vector<TraceTrial> trials;
  // A project that does not exist has no trials.
  if (place != nullptr && place->place.owner == CapsOwner::kProject && project_id == 0) {
    return trials;
  }
  const std::int64_t least_age = LeastOf(placed, &Caps::trace_age_seconds);
  const std::int64_t least_bytes = LeastOf(placed, &Caps::trial_trace_bytes);
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(sql::kListTrialsWithTraces,
                      {trial_id, project_id, least_age, least_bytes == 0 ? INT64_MAX : least_bytes,
                       !projects.is_all(), PgArray(projects.named())}));
  for (int row = 0; row < rows.row_count(); ++row) {
    trials.push_back({TrialId{rows.Int64(row, 0)}, rows.Int64(row, 1)});
  }
  return trials;
}

absl::StatusOr<std::vector<KeptTrace>> ListKeptTraces(PgConnection& connection, TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection.Exec(sql::kListTracesByAge, {Value(trial_id)}));
  std::vector<KeptTrace> kept;
  for (int row = 0; row < rows.row_count(); ++row) {
    kept.push_back({.trace_no = rows.Int32(row, 0),
                    .byte_count = rows.Int64(row, 1),
                    .age_seconds = rows.Int64(row, 2),
                    .created_time_us = rows.TimestampUs(row, 4),
                    .is_whole = static_cast<StoredTraceState>(rows.Int32(row, 3)) ==
                                StoredTraceState::kComplete});
  }
  return kept;
}

absl::StatusOr<std::vector<AbandonedTrace>> ListAbandonedTraces(PgConnection& connection,
                                                                const ProjectFilter& projects) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(sql::kListAbandonedTraces, {absl::ToDoubleSeconds(kTraceAbandonedAfter),
                                                  !projects.is_all(), PgArray(projects.named())}));
  std::vector<AbandonedTrace> abandoned;
  for (int row = 0; row < rows.row_count(); ++row) {
    abandoned.push_back({TrialId{rows.Int64(row, 0)},
                         {.trace_no = rows.Int32(row, 1),
                          .byte_count = rows.Int64(row, 2),
                          .created_time_us = rows.TimestampUs(row, 3)}});
  }
  return abandoned;
}

CapRemoval TraceRemoval(TrialId trial_id, const KeptTrace& trace, const char* field) {
  return {.trial_id = trial_id,
          .field = field,
          .first_time_us = trace.created_time_us,
          .last_time_us = trace.created_time_us,
          .trace_count = 1,
          .trace_bytes = trace.byte_count};
}

absl::Status PreviewTraces(PgConnection& connection, const FoundPlace* place,
                           const ProjectFilter& projects, const std::vector<PlacedCaps>& placed,
                           CapRemovals& removals) {
  // As PgTraceSweeper::Run.
  if (place != nullptr && !place->place.metric_group.empty()) return absl::OkStatus();
  std::set<std::pair<TrialId, std::int32_t>> gone;
  if (place == nullptr) {
    STEPWELL_ASSIGN_OR_RETURN(const std::vector<AbandonedTrace> abandoned,
                              ListAbandonedTraces(connection, projects));
    for (const AbandonedTrace& each : abandoned) {
      gone.insert({each.trial_id, each.trace.trace_no});
      removals.Add(TraceRemoval(each.trial_id, each.trace, kTraceAbandoned));
    }
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<TraceTrial> trials,
                            ListTraceTrials(connection, place, projects, placed));
  for (const TraceTrial& trial : trials) {
    STEPWELL_ASSIGN_OR_RETURN(std::vector<KeptTrace> kept,
                              ListKeptTraces(connection, trial.trial_id));
    std::erase_if(kept, [&](const KeptTrace& trace) {
      return gone.contains({trial.trial_id, trace.trace_no});
    });
    const EffectiveCaps caps = ResolveCaps(placed, trial.project_id, Value(trial.trial_id), "");
    for (const TraceGiveUp& each :
         PlanTraceSweep(kept, {caps.trace_age_seconds.value, caps.trial_trace_bytes.value})) {
      removals.Add(TraceRemoval(trial.trial_id, each.trace, each.reason));
    }
  }
  return absl::OkStatus();
}

}  // namespace stepwell
