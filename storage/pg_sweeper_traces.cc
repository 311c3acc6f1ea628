#include "storage/pg_sweeper_traces.h"

#include "base/status_macros.h"
#include "storage/pg_caps_read.h"
#include "storage/pg_trace_candidates.h"
#include "storage/pg_trace_rows.h"
#include "storage/pg_trace_sql.h"

namespace stepwell {

absl::Status PgTraceSweeper::Run(const FoundPlace* place) {
  const bool is_group = place != nullptr && !place->place.metric_group.empty();
  if (is_group) return absl::OkStatus();
  // `place` was looked for in the projects of who asked.
  if (place == nullptr) STEPWELL_RETURN_IF_ERROR(GiveUpAbandoned());
  STEPWELL_ASSIGN_OR_RETURN(const Places places, ReadPlaces(connection_, kAllProjects));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<TraceTrial> trials,
                            ListTraceTrials(connection_, place, kAllProjects, places.placed));
  for (const TraceTrial& trial : trials) {
    if (pace_.IsOver()) break;
    STEPWELL_RETURN_IF_ERROR(SweepTrial(
        trial.trial_id, ResolveCaps(places.placed, trial.project_id, Value(trial.trial_id), "")));
  }
  const TrialId of_place{place == nullptr ? 0 : place->trial_id};
  STEPWELL_RETURN_IF_ERROR(Clear(of_place).status());
  result_.more = result_.more || pace_.stopped();
  return absl::OkStatus();
}

absl::Status PgTraceSweeper::SweepTrial(TrialId trial_id, const EffectiveCaps& caps) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<KeptTrace> kept,
                            ListKeptTraces(connection_, trial_id));
  for (const TraceGiveUp& each :
       PlanTraceSweep(kept, {caps.trace_age_seconds.value, caps.trial_trace_bytes.value})) {
    if (pace_.IsOver()) break;
    STEPWELL_RETURN_IF_ERROR(GiveUp(trial_id, each.trace.trace_no, each.reason));
  }
  return absl::OkStatus();
}

absl::Status PgTraceSweeper::GiveUpAbandoned() {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<AbandonedTrace> abandoned,
                            ListAbandonedTraces(connection_, kAllProjects));
  for (const AbandonedTrace& each : abandoned) {
    if (pace_.IsOver()) break;
    STEPWELL_RETURN_IF_ERROR(GiveUp(each.trial_id, each.trace.trace_no, kTraceAbandoned));
  }
  return absl::OkStatus();
}

absl::Status PgTraceSweeper::GiveUp(TrialId trial_id, std::int32_t trace_no, const char* reason) {
  return InSweepTransaction(
      connection_, owner_epoch_, result_.removed,
      [&](std::vector<CapRemoval>& removed) -> absl::Status {
        STEPWELL_RETURN_IF_ERROR(
            connection_.Exec(sql::kLockTraceUsage, {Value(trial_id)}).status());
        STEPWELL_ASSIGN_OR_RETURN(const PgResult found,
                                  connection_.Exec(sql::kLockTrace, {Value(trial_id), trace_no}));
        if (found.row_count() == 0) return absl::OkStatus();
        const TraceRecord trace = TraceAt(found, 0);
        const bool is_kept = trace.state == StoredTraceState::kUploading ||
                             trace.state == StoredTraceState::kComplete;
        if (!is_kept) return absl::OkStatus();
        removed.push_back(TraceRemoval(trial_id,
                                       {.trace_no = trace_no,
                                        .byte_count = trace.header.byte_count,
                                        .created_time_us = trace.created_time_us},
                                       reason));
        return GiveUpTrace(connection_, trace, reason);
      });
}

absl::StatusOr<bool> PgTraceSweeper::Clear(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection_.Exec(sql::kListTracesToClear, {Value(trial_id)}));
  for (int row = 0; row < rows.row_count(); ++row) {
    for (bool is_clear = false; !is_clear;) {
      // Not before a first one, or calls however short would come to no end.
      if (result_.advanced && pace_.IsOver()) return false;
      STEPWELL_ASSIGN_OR_RETURN(
          is_clear, ClearTraceSlice(connection_, owner_epoch_, TrialId{rows.Int64(row, 0)},
                                    rows.Int32(row, 1)));
      result_.advanced = true;
    }
  }
  return true;
}

absl::StatusOr<bool> PgTraceSweeper::ClearTrial(TrialId trial_id) {
  CapRemovals nothing;
  const absl::Status given_up = InSweepTransaction(
      connection_, owner_epoch_, nothing, [&](std::vector<CapRemoval>&) -> absl::Status {
        STEPWELL_RETURN_IF_ERROR(
            connection_.Exec(sql::kGiveUpTracesOf, {Value(trial_id)}).status());
        return connection_.Exec(sql::kDropTraceUsage, {Value(trial_id)}).status();
      });
  STEPWELL_RETURN_IF_ERROR(given_up);
  // A page at a time.
  while (true) {
    STEPWELL_ASSIGN_OR_RETURN(const bool is_page_clear, Clear(trial_id));
    if (!is_page_clear) return false;
    STEPWELL_ASSIGN_OR_RETURN(const PgResult left,
                              connection_.Exec(sql::kListTracesToClear, {Value(trial_id)}));
    if (left.row_count() == 0) return true;
  }
}

}  // namespace stepwell
