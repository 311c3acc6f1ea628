#include "storage/pg_sweeper_bounds.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_series_excess.h"
#include "storage/pg_sweeper_sql.h"

namespace stepwell {
namespace {

constexpr absl::Duration kLookAtAllInterval = absl::Hours(1);

std::vector<std::int64_t> Column(const PgResult& rows) {
  std::vector<std::int64_t> values;
  for (int row = 0; row < rows.row_count(); ++row) values.push_back(rows.Int64(row, 0));
  return values;
}

bool BoundsRows(const CapsIndex& index) {
  return index.AnyBounds(*FindCapField("trial_bytes")) ||
         index.AnyBounds(*FindCapField("series_samples"));
}

}  // namespace

absl::Status PgBoundSweeper::Run(const FoundPlace* place) {
  STEPWELL_ASSIGN_OR_RETURN(const Places places, ReadPlaces(connection_));
  const CapsIndex index(places.placed);
  if (!BoundsRows(index) || pace_.IsOver()) return absl::OkStatus();
  // Before the sums: what grows meanwhile is looked at next time.
  STEPWELL_ASSIGN_OR_RETURN(const PgResult growing, connection_.Exec(sql::kListGrowing));
  STEPWELL_ASSIGN_OR_RETURN(const PgResult version, connection_.Exec(sql::kReadCapsVersion));
  const std::string caps_version(version.Text(0, 0));
  if (caps_version != memory_.caps_version) memory_.all_seen = absl::InfinitePast();
  const absl::Time begin = absl::Now();
  const bool sees_all = place != nullptr || begin - memory_.all_seen > kLookAtAllInterval;
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Trial> trials, ReadTrials(place));
  for (const Trial& trial : trials) {
    if (pace_.IsOver()) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(
        Annotate(SweepTrial(trial, index.Of(trial.project_id, Value(trial.trial_id)),
                            place == nullptr ? "" : place->place.metric_group),
                 absl::StrCat("trial ", Value(trial.trial_id))));
  }
  if (place != nullptr || pace_.stopped()) return absl::OkStatus();
  memory_.growing = Column(growing);
  memory_.caps_version = caps_version;
  if (sees_all) memory_.all_seen = begin;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PgBoundSweeper::Trial>> PgBoundSweeper::ReadTrials(
    const FoundPlace* place) {
  const std::int64_t trial_id = place == nullptr ? 0 : place->trial_id;
  std::int64_t project_id = place == nullptr ? 0 : place->project_id;
  // A project without a number has no trials.
  if (place != nullptr && place->place.owner == CapsOwner::kProject && project_id == 0) {
    project_id = -1;
  }
  const bool all = place != nullptr || absl::Now() - memory_.all_seen > kLookAtAllInterval;
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection_.Exec(sql::kSumLedger, {trial_id, project_id, all, PgArray(memory_.growing)}));
  std::vector<Trial> trials;
  for (int row = 0; row < rows.row_count(); ++row) {
    const TrialId id{rows.Int64(row, 0)};
    if (trials.empty() || trials.back().trial_id != id) {
      trials.push_back({.trial_id = id, .project_id = rows.Int64(row, 1)});
    }
    trials.back().groups.push_back({.metric_group = std::string(rows.Text(row, 2)),
                                    .sample_count = rows.Int64(row, 3),
                                    .byte_count = rows.Int64(row, 4)});
  }
  return trials;
}

absl::Status PgBoundSweeper::SweepTrial(const Trial& trial, const std::vector<PlacedCaps>& deciding,
                                        const std::string& only_group) {
  const auto caps_of = [&](const std::string& group) {
    return ResolveCaps(deciding, trial.project_id, Value(trial.trial_id), group);
  };
  for (const Group& group : trial.groups) {
    if (!only_group.empty() && group.metric_group != only_group) continue;
    const EffectiveCaps caps = caps_of(group.metric_group);
    const std::int64_t samples_max = caps.series_samples.value;
    // No series can have more than its group.
    if (samples_max > 0 && group.sample_count > samples_max) {
      STEPWELL_RETURN_IF_ERROR(SweepSamples(trial.trial_id, group.metric_group, samples_max));
    }
    const std::int64_t bytes_max = GroupBytesCap(caps);
    if (bytes_max > 0 && group.byte_count > bytes_max) {
      STEPWELL_RETURN_IF_ERROR(SweepBytes(trial.trial_id, group.metric_group, bytes_max));
    }
  }
  const std::int64_t bytes_max = caps_of("").trial_bytes.value;
  if (!only_group.empty() || bytes_max == 0) return absl::OkStatus();
  return SweepBytes(trial.trial_id, "", bytes_max);
}

absl::StatusOr<SliceTarget> PgBoundSweeper::TargetOf(TrialId trial_id, const std::string& group,
                                                     const char* field) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection_.Exec(sql::kListSeriesOf, {Value(trial_id), group}));
  SliceTarget target{.trial_id = trial_id, .is_group = !group.empty(), .field = field};
  for (int row = 0; row < rows.row_count(); ++row) target.series_nos.push_back(rows.Int32(row, 0));
  return target;
}

absl::StatusOr<std::vector<PgBoundSweeper::Leaf>> PgBoundSweeper::ReadLeaves(
    TrialId trial_id, const std::string& group) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection_.Exec(sql::kListLeavesOf, {Value(trial_id), group}));
  std::vector<Leaf> leaves;
  for (int row = 0; row < rows.row_count(); ++row) {
    leaves.push_back({.key = {static_cast<std::int16_t>(rows.Int32(row, 1)), rows.DateDays(row, 0)},
                      .row_count = rows.Int64(row, 2),
                      .byte_count = rows.Int64(row, 3),
                      .rollup_byte_count = rows.Int64(row, 4)});
  }
  return leaves;
}

absl::StatusOr<std::int64_t> PgBoundSweeper::ReadBytes(TrialId trial_id, const std::string& group) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Leaf> leaves, ReadLeaves(trial_id, group));
  std::int64_t bytes = 0;
  for (const Leaf& leaf : leaves) bytes += leaf.byte_count + leaf.rollup_byte_count;
  return bytes;
}

absl::StatusOr<bool> PgBoundSweeper::HasMergedRows(TrialId trial_id, const std::string& group) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult counts,
                            connection_.Exec(sql::kCountRecent, {Value(trial_id), group}));
  return counts.Int64(0, 0) > counts.Int64(0, 1);
}

absl::Status PgBoundSweeper::SweepBytes(TrialId trial_id, const std::string& group,
                                        std::int64_t bytes_max) {
  STEPWELL_ASSIGN_OR_RETURN(const std::int64_t bytes, ReadBytes(trial_id, group));
  std::int64_t over = bytes - bytes_max;
  if (over <= 0) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const SliceTarget target, TargetOf(trial_id, group, "trial_bytes"));
  for (const LeafPair pair : {LeafPair::kSamples, LeafPair::kRollups}) {
    STEPWELL_ASSIGN_OR_RETURN(const bool has_samples, HasMergedRows(trial_id, group));
    if (pair == LeafPair::kRollups && has_samples) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(const std::vector<Leaf> leaves, ReadLeaves(trial_id, group));
    for (const Leaf& leaf : leaves) {
      if (over <= 0 || pace_.IsOver()) return absl::OkStatus();
      const bool of_samples = pair == LeafPair::kSamples;
      if (of_samples ? leaf.row_count <= 0 : leaf.rollup_byte_count <= 0) continue;
      // A row of rollups takes some 300 bytes.
      const std::int64_t row_bytes = of_samples ? leaf.byte_count / leaf.row_count : 300;
      const auto freed = slices_.FreeBytes(target, {pair, leaf.key}, over, row_bytes);
      if (SqlState(freed.status()) == "42P01") continue;  // no leaf yet, or none any more
      STEPWELL_RETURN_IF_ERROR(freed.status());
      over -= *freed;
    }
  }
  return absl::OkStatus();
}

absl::Status PgBoundSweeper::SweepSamples(TrialId trial_id, const std::string& group,
                                          std::int64_t samples_max) {
  STEPWELL_ASSIGN_OR_RETURN(const SliceTarget target, TargetOf(trial_id, group, "series_samples"));
  const auto remove = [&](const std::map<LeafKey, std::vector<ExcessRow>>& rows) -> absl::Status {
    for (const auto& [leaf, excess] : rows) {
      std::vector<RowKey> keys;
      for (const ExcessRow& row : excess) keys.push_back(row.key);
      const auto freed = slices_.RemoveRows(target, leaf, keys);
      if (SqlState(freed.status()) == "42P01") continue;
      STEPWELL_RETURN_IF_ERROR(freed.status());
    }
    return absl::OkStatus();
  };
  return ForEachExcess(connection_, trial_id, target.series_nos, samples_max,
                       [&](const auto& rows) -> absl::StatusOr<bool> {
                         STEPWELL_RETURN_IF_ERROR(remove(rows));
                         return !pace_.IsOver();
                       });
}

}  // namespace stepwell
