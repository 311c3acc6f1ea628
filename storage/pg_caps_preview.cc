#include "storage/pg_caps_preview.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/caps_index.h"
#include "storage/caps_preview.h"
#include "storage/pg_array.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_series_excess.h"
#include "storage/pg_sweeper_sql.h"
#include "storage/pg_trace_candidates.h"

namespace stepwell {
namespace {

// The places as they would be.
absl::Status SetAt(const CapsPlace& place, const Caps& caps, const std::vector<std::string>& clear,
                   std::vector<PlacedCaps>& placed) {
  const auto found = std::find_if(placed.begin(), placed.end(),
                                  [&](const PlacedCaps& each) { return each.place == place; });
  PlacedCaps& at = found != placed.end() ? *found : placed.emplace_back(PlacedCaps{.place = place});
  STEPWELL_RETURN_IF_ERROR(ChangeCaps(caps, clear, at.caps));
  return CheckCaps(at.caps, place);
}

absl::StatusOr<std::vector<PreviewTrial>> ReadTrials(PgConnection& connection, std::int64_t after,
                                                     const FoundPlace& place,
                                                     const ProjectFilter& projects) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(sql::kListTrialsToPreview, {after, place.trial_id, place.project_id,
                                                  !projects.is_all(), PgArray(projects.named())}));
  std::vector<PreviewTrial> trials;
  std::vector<std::int64_t> numbers;
  for (int row = 0; row < rows.row_count(); ++row) {
    trials.push_back({.trial_id = TrialId{rows.Int64(row, 0)}, .project_id = rows.Int64(row, 1)});
    numbers.push_back(rows.Int64(row, 0));
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult lines,
                            connection.Exec(sql::kReadLinesToPreview, {PgArray(numbers)}));
  auto trial = trials.begin();
  for (int row = 0; row < lines.row_count(); ++row) {
    while (Value(trial->trial_id) != lines.Int64(row, 0)) ++trial;
    trial->lines.push_back({.received_day = lines.DateDays(row, 1),
                            .keep_class = static_cast<std::int16_t>(lines.Int32(row, 2)),
                            .metric_group = std::string(lines.Text(row, 3)),
                            .sample_count = lines.Int64(row, 4),
                            .byte_count = lines.Int64(row, 5),
                            .rollup_byte_count = lines.Int64(row, 6),
                            .first_time_us = lines.Int64(row, 7),
                            .last_time_us = lines.Int64(row, 8)});
  }
  return trials;
}

absl::StatusOr<SampleExcess> CountExcess(PgConnection& connection, TrialId trial_id,
                                         const std::string& group, std::int64_t samples_max) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection.Exec(sql::kListSeriesOf, {Value(trial_id), group}));
  std::vector<std::int32_t> series_nos;
  for (int row = 0; row < rows.row_count(); ++row) series_nos.push_back(rows.Int32(row, 0));
  SampleExcess excess;
  const auto count = [&](const ExcessRows& leaves, std::int32_t) {
    for (const auto& [leaf, excess_rows] : leaves) {
      for (const ExcessRow& row : excess_rows) {
        const bool is_first = excess.sample_count == 0;
        excess.sample_count += row.sample_count;
        excess.first_time_us = is_first ? row.key.first_time_us
                                        : std::min(excess.first_time_us, row.key.first_time_us);
        excess.last_time_us =
            is_first ? row.last_time_us : std::max(excess.last_time_us, row.last_time_us);
      }
    }
    return absl::StatusOr<bool>(true);
  };
  STEPWELL_RETURN_IF_ERROR(ForEachExcess(connection, trial_id, series_nos, samples_max, count));
  return excess;
}

// Counts rows of groups that may have a series over its bound.
absl::Status AddExcess(PgConnection& connection, const PreviewRules& rules, PreviewTrial& trial) {
  std::map<std::string, std::int64_t> samples;
  for (const PreviewLine& line : trial.lines) samples[line.metric_group] += line.sample_count;
  for (const auto& [group, sample_count] : samples) {
    if (!rules.only_group.empty() && group != rules.only_group) continue;
    const std::int64_t samples_max =
        ResolveCaps(rules.placed, trial.project_id, Value(trial.trial_id), group)
            .series_samples.value;
    if (samples_max == 0 || sample_count <= samples_max) continue;
    STEPWELL_ASSIGN_OR_RETURN(const SampleExcess excess,
                              CountExcess(connection, trial.trial_id, group, samples_max));
    if (excess.sample_count > 0) trial.excess[group] = excess;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CapRemovals> PreviewCaps(PgConnection& connection, const PreviewRequest& request,
                                        const ProjectFilter& projects) {
  const bool changes = request.caps || !request.clear.empty();
  if (changes && !request.target) {
    return absl::InvalidArgumentError("caps: without a place; say where they would be set");
  }
  FoundPlace place;
  if (request.target) {
    STEPWELL_ASSIGN_OR_RETURN(place, FindPlace(connection, *request.target, projects));
  }
  STEPWELL_ASSIGN_OR_RETURN(Places places, ReadPlaces(connection, projects));
  if (changes) {
    STEPWELL_RETURN_IF_ERROR(
        SetAt(place.place, request.caps.value_or(Caps{}), request.clear, places.placed));
  }
  CapRemovals removals;
  const bool no_project = place.place.owner == CapsOwner::kProject && place.project_id == 0;
  if (no_project) return removals;
  const CapsIndex index(places.placed);
  STEPWELL_ASSIGN_OR_RETURN(const KeepClasses classes, ReadKeepClasses(connection));
  PreviewRules rules{
      .classes = classes.all(),
      .for_merged_rows = request.for_merged_rows,
      .now_us = request.now_us != 0 ? request.now_us : absl::ToUnixMicros(absl::Now()),
      .only_group = place.place.metric_group};
  std::int64_t after = INT64_MIN;
  for (;;) {
    STEPWELL_ASSIGN_OR_RETURN(std::vector<PreviewTrial> trials,
                              ReadTrials(connection, after, place, projects));
    if (trials.empty()) break;
    after = Value(trials.back().trial_id);
    for (PreviewTrial& trial : trials) {
      rules.placed = index.Of(trial.project_id, Value(trial.trial_id));
      STEPWELL_RETURN_IF_ERROR(AddExcess(connection, rules, trial));
      PlanPreview(std::move(trial), rules, removals);
    }
  }
  STEPWELL_RETURN_IF_ERROR(PreviewTraces(connection, request.target ? &place : nullptr, projects,
                                         places.placed, removals));
  removals.Sort();
  return removals;
}

}  // namespace stepwell
