#include "storage/pg_sweeper_bounds.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_error.h"
#include "storage/pg_series_excess.h"
#include "storage/pg_sweeper_sql.h"

namespace stepwell {
namespace {

constexpr absl::Duration kLookAtAllInterval = absl::Hours(1);
// Of further turns of trials that are over their bounds by much, before all others have one again.
constexpr absl::Duration kRoundMax = absl::Minutes(2);

std::string KeyOf(const std::string& caps_version, const FoundPlace* place) {
  if (place == nullptr) return absl::StrCat("all ", caps_version);
  return absl::StrCat("trial ", place->trial_id, " project ", place->project_id, " group ",
                      place->place.metric_group, " ", caps_version);
}

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
  STEPWELL_ASSIGN_OR_RETURN(const Places places, ReadPlaces(connection_, kAllProjects));
  const CapsIndex index(places.placed);
  if (!BoundsRows(index)) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(BoundRound * round, RoundOf(place));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Trial> trials, ReadTrials(place, *round));
  pace_.Start();
  STEPWELL_ASSIGN_OR_RETURN(const bool all_had_turns, SweepTrials(trials, index, place, *round));
  if (all_had_turns) {
    EndTurns(trials, place, *round);
  } else {
    result_.more = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundRound*> PgBoundSweeper::RoundOf(const FoundPlace* place) {
  // Before the sums: what grows meanwhile is looked at next time.
  auto listed = connection_.Exec(sql::kListGrowing);
  if (IsUnreadable(listed.status())) listed = connection_.Exec(sql::kListNotDeleted);
  STEPWELL_ASSIGN_OR_RETURN(const PgResult growing, std::move(listed));
  STEPWELL_ASSIGN_OR_RETURN(const PgResult version, connection_.Exec(sql::kReadCapsVersion));
  const std::string caps_version(version.Text(0, 0));
  if (caps_version != memory_.caps_version) {
    memory_.all_seen = SteadyTime::InfinitePast();
    memory_.ranks.clear();
    memory_.caps_version = caps_version;
  }
  BoundRound& round = place == nullptr ? memory_.round : memory_.place_round;
  const std::string key = KeyOf(caps_version, place);
  if (round.key != key) {
    const SteadyTime now = SteadyTime::Now();
    round = {.key = key,
             .begin = now,
             .sees_all = place != nullptr || now - memory_.all_seen > kLookAtAllInterval};
  }
  const std::vector<std::int64_t> ids = Column(growing);
  round.growing.insert(ids.begin(), ids.end());
  return &round;
}

absl::StatusOr<std::vector<PgBoundSweeper::Trial>> PgBoundSweeper::ReadTrials(
    const FoundPlace* place, const BoundRound& round) {
  const std::int64_t trial_id = place == nullptr ? 0 : place->trial_id;
  std::int64_t project_id = place == nullptr ? 0 : place->project_id;
  // A project without a number has no trials.
  if (place != nullptr && place->place.owner == CapsOwner::kProject && project_id == 0) {
    project_id = -1;
  }
  std::set<std::int64_t> some = round.again;
  if (some.empty()) {
    some = memory_.growing;
    some.insert(round.growing.begin(), round.growing.end());
  }
  const bool sums_all = round.again.empty() && round.sees_all;
  const std::vector<std::int64_t> ids(some.begin(), some.end());
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            sums_all ? connection_.Exec(sql::kSumLedger, {trial_id, project_id})
                                     : connection_.Exec(sql::kSumLedgerOf, {PgArray(ids)}));
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

absl::StatusOr<bool> PgBoundSweeper::SweepTrials(const std::vector<Trial>& trials,
                                                 const CapsIndex& index, const FoundPlace* place,
                                                 BoundRound& round) {
  // What went and what was ranked, so far.
  const auto done = [this] {
    const CapRemovals& removed = result_.removed;
    return removed.sample_count + removed.raw_bytes + removed.rollup_bytes + ranked_count_;
  };
  bool is_first = true;
  for (const Trial& trial : trials) {
    const std::int64_t id = Value(trial.trial_id);
    if (id <= round.after) continue;
    // One at least: to sum up may have taken all the time.
    if (!is_first && pace_.IsOver()) return false;
    const std::int64_t before = done();
    const absl::Status swept =
        SweepTrial(trial, index.Of(trial.project_id, id),
                   place == nullptr ? "" : place->place.metric_group, round.begin);
    STEPWELL_RETURN_IF_ERROR(errors_.Take(swept, absl::StrCat("trial ", id)));
    round.after = id;
    const bool is_cut = swept.ok() && pace_.stopped();
    const bool came_further = done() > before;
    // With all the time of a call and to no avail: it is looked at in the next round.
    const bool is_in_vain = !round.again.empty() && is_first && !came_further;
    if (is_cut) (is_in_vain ? round.growing : round.cut).insert(id);
    if (round.again.empty() || came_further || !is_cut) result_.advanced = true;
    is_first = false;
  }
  return true;
}

void PgBoundSweeper::EndTurns(const std::vector<Trial>& trials, const FoundPlace* place,
                              BoundRound& round) {
  const bool is_last = round.cut.empty() || SteadyTime::Now() - round.begin > kRoundMax;
  result_.more = result_.more || !round.cut.empty();
  if (!is_last) {
    round.again = std::exchange(round.cut, {});
    round.after = 0;
    return;
  }
  if (place == nullptr) {
    round.growing.insert(round.cut.begin(), round.cut.end());
    memory_.growing = std::move(round.growing);
    if (round.sees_all) memory_.all_seen = round.begin;
    if (round.sees_all && round.again.empty()) {
      std::set<std::int64_t> there;
      for (const Trial& trial : trials) there.insert(Value(trial.trial_id));
      std::erase_if(memory_.ranks,
                    [&](const auto& rank) { return !there.contains(rank.first.first); });
    }
  }
  round = {};
}

absl::Status PgBoundSweeper::SweepTrial(const Trial& trial, const std::vector<PlacedCaps>& deciding,
                                        const std::string& only_group, SteadyTime round_begin) {
  const auto caps_of = [&](const std::string& group) {
    return ResolveCaps(deciding, trial.project_id, Value(trial.trial_id), group);
  };
  for (const Group& group : trial.groups) {
    if (!only_group.empty() && group.metric_group != only_group) continue;
    const EffectiveCaps caps = caps_of(group.metric_group);
    const std::int64_t samples_max = caps.series_samples.value;
    // No series can have more than its group.
    if (samples_max > 0 && group.sample_count > samples_max) {
      STEPWELL_RETURN_IF_ERROR(SweepSamples(trial.trial_id, group, samples_max, round_begin));
    }
    // Bytes come when it is known which samples go anyway.
    if (pace_.stopped()) return absl::OkStatus();
    const std::int64_t bytes_max = GroupBytesCap(caps);
    if (bytes_max > 0 && group.byte_count > bytes_max) {
      STEPWELL_RETURN_IF_ERROR(SweepBytes(trial.trial_id, group.metric_group, bytes_max));
    }
    if (pace_.stopped()) return absl::OkStatus();
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
  const std::int64_t over_before = over;
  STEPWELL_ASSIGN_OR_RETURN(const SliceTarget target, TargetOf(trial_id, group, "trial_bytes"));
  for (const LeafPair pair : {LeafPair::kSamples, LeafPair::kRollups}) {
    STEPWELL_ASSIGN_OR_RETURN(const bool has_samples, HasMergedRows(trial_id, group));
    if (pair == LeafPair::kRollups && has_samples) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(const std::vector<Leaf> leaves, ReadLeaves(trial_id, group));
    for (const Leaf& leaf : leaves) {
      if (over <= 0 || (over < over_before && pace_.IsOver())) return absl::OkStatus();
      const bool of_samples = pair == LeafPair::kSamples;
      if (of_samples ? leaf.row_count <= 0 : leaf.rollup_byte_count <= 0) continue;
      // A row of rollups takes some 300 bytes.
      const std::int64_t row_bytes = of_samples ? leaf.byte_count / leaf.row_count : 300;
      const auto freed = slices_.FreeBytes(target, {pair, leaf.key}, over, row_bytes);
      // No leaf yet, or none any more; the second where rows should have moved into it.
      const auto& state = SqlState(freed.status());
      if (state == "42P01" || state == "23514") continue;
      STEPWELL_RETURN_IF_ERROR(freed.status());
      over -= *freed;
    }
  }
  return absl::OkStatus();
}

absl::Status PgBoundSweeper::SweepSamples(TrialId trial_id, const Group& group,
                                          std::int64_t samples_max, SteadyTime round_begin) {
  GroupRank& rank = memory_.ranks[{Value(trial_id), group.metric_group}];
  if (rank.is_done) {
    const bool is_same =
        rank.sample_count == group.sample_count && rank.byte_count == group.byte_count;
    if (is_same || rank.done_time >= round_begin) return absl::OkStatus();
    rank = {.sample_count = group.sample_count, .byte_count = group.byte_count, .is_done = false};
  }
  STEPWELL_ASSIGN_OR_RETURN(const SliceTarget target,
                            TargetOf(trial_id, group.metric_group, "series_samples"));
  std::vector<std::int32_t> series_nos = target.series_nos;
  std::erase_if(series_nos, [&](std::int32_t number) { return number <= rank.after_series; });
  const auto remove = [&](const ExcessRows& rows, std::int32_t last) -> absl::StatusOr<bool> {
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t freed, RemoveExcess(target, rows));
    // What could not go now, of a merge under way, may go later without a change of the sums.
    if (!rows.empty()) rank.sample_count = -1;
    const bool is_over = pace_.IsOver();
    if (freed > 0 && is_over) return false;
    rank.after_series = last;
    ++ranked_count_;
    return !is_over;
  };
  STEPWELL_RETURN_IF_ERROR(ForEachExcess(connection_, trial_id, series_nos, samples_max, remove));
  rank.is_done = series_nos.empty() || rank.after_series == series_nos.back();
  if (rank.is_done) rank.done_time = SteadyTime::Now();
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> PgBoundSweeper::RemoveExcess(const SliceTarget& target,
                                                          const ExcessRows& rows) {
  std::int64_t bytes = 0;
  for (const auto& [leaf, excess] : rows) {
    if (bytes > 0 && pace_.IsOver()) break;
    std::vector<RowKey> keys;
    for (const ExcessRow& row : excess) keys.push_back(row.key);
    const auto freed = slices_.RemoveRows(target, leaf, keys);
    if (SqlState(freed.status()) == "42P01") continue;
    STEPWELL_RETURN_IF_ERROR(freed.status());
    bytes += *freed;
  }
  return bytes;
}

}  // namespace stepwell
