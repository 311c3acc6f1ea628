#include "storage/pg_sweeper_traces.h"

#include "base/status_macros.h"
#include "storage/caps_index.h"
#include "storage/pg_caps_read.h"
#include "storage/pg_trace_rows.h"
#include "storage/pg_trace_sql.h"

namespace stepwell {
namespace {

// As an answer tells what goes: it has the times of its upload.
CapRemoval RemovalOf(const TraceRecord& trace, const char* field) {
  return {.trial_id = trace.trial_id,
          .field = field,
          .first_time_us = trace.created_time_us,
          .last_time_us = trace.created_time_us,
          .trace_count = 1,
          .trace_bytes = trace.header.byte_count};
}

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

absl::Status PgTraceSweeper::Run(const FoundPlace* place) {
  const bool is_group = place != nullptr && !place->place.metric_group.empty();
  if (is_group) return absl::OkStatus();
  if (place == nullptr) STEPWELL_RETURN_IF_ERROR(GiveUpAbandoned());
  STEPWELL_ASSIGN_OR_RETURN(const Places places, ReadPlaces(connection_));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Trial> trials, ListTrials(place, places.placed));
  for (const Trial& trial : trials) {
    if (pace_.IsOver()) break;
    STEPWELL_RETURN_IF_ERROR(
        SweepTrial(trial, ResolveCaps(places.placed, trial.project_id, Value(trial.trial_id), "")));
  }
  const TrialId of_place{place == nullptr ? 0 : place->trial_id};
  STEPWELL_RETURN_IF_ERROR(Clear(of_place).status());
  result_.more = result_.more || pace_.stopped();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PgTraceSweeper::Trial>> PgTraceSweeper::ListTrials(
    const FoundPlace* place, const std::vector<PlacedCaps>& placed) {
  const std::int64_t trial_id = place == nullptr ? 0 : place->trial_id;
  const std::int64_t project_id = place == nullptr || trial_id != 0 ? 0 : place->project_id;
  std::vector<Trial> trials;
  // A project that does not exist has no trials.
  if (place != nullptr && place->place.owner == CapsOwner::kProject && project_id == 0) {
    return trials;
  }
  const std::int64_t least_age = LeastOf(placed, &Caps::trace_age_seconds);
  const std::int64_t least_bytes = LeastOf(placed, &Caps::trial_trace_bytes);
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection_.Exec(sql::kListTrialsWithTraces, {trial_id, project_id, least_age,
                                                    least_bytes == 0 ? INT64_MAX : least_bytes}));
  for (int row = 0; row < rows.row_count(); ++row) {
    trials.push_back(
        {TrialId{rows.Int64(row, 0)}, rows.Int64(row, 1), rows.Int64(row, 2), rows.Int64(row, 3)});
  }
  return trials;
}

absl::Status PgTraceSweeper::SweepTrial(const Trial& trial, const EffectiveCaps& caps) {
  const std::int64_t age_max = caps.trace_age_seconds.value;
  const std::int64_t bytes_max = caps.trial_trace_bytes.value;
  const bool is_too_old = age_max > 0 && trial.oldest_seconds > age_max;
  const bool is_too_large = bytes_max > 0 && trial.byte_count > bytes_max;
  if (!is_too_old && !is_too_large) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection_.Exec(sql::kListTracesByAge, {Value(trial.trial_id)}));
  std::int64_t kept_bytes = trial.byte_count;
  for (int row = 0; row < rows.row_count() && !pace_.IsOver(); ++row) {
    const bool is_old = age_max > 0 && rows.Int64(row, 2) > age_max;
    // What is being uploaded would only come again.
    const bool is_whole =
        static_cast<StoredTraceState>(rows.Int32(row, 3)) == StoredTraceState::kComplete;
    const bool is_beyond = bytes_max > 0 && kept_bytes > bytes_max && is_whole;
    if (!is_old && !is_beyond) continue;
    STEPWELL_RETURN_IF_ERROR(GiveUp(trial.trial_id, rows.Int32(row, 0),
                                    is_old ? "trace_age_seconds" : "trial_trace_bytes"));
    kept_bytes -= rows.Int64(row, 1);
  }
  return absl::OkStatus();
}

absl::Status PgTraceSweeper::GiveUpAbandoned() {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection_.Exec(sql::kListAbandonedTraces, {absl::ToDoubleSeconds(kAbandonedAfter)}));
  for (int row = 0; row < rows.row_count() && !pace_.IsOver(); ++row) {
    STEPWELL_RETURN_IF_ERROR(GiveUp(TrialId{rows.Int64(row, 0)}, rows.Int32(row, 1), "abandoned"));
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
        removed.push_back(RemovalOf(trace, reason));
        return GiveUpTrace(connection_, trace, reason);
      });
}

absl::StatusOr<bool> PgTraceSweeper::Clear(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection_.Exec(sql::kListTracesToClear, {Value(trial_id)}));
  for (int row = 0; row < rows.row_count(); ++row) {
    for (bool is_clear = false; !is_clear;) {
      if (pace_.IsOver()) return false;
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
