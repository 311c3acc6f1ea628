#include "storage/series_groups.h"

#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_fold_sql.h"

namespace stepwell {

std::int32_t SeriesGroups::GroupIndex(std::string_view name) {
  const auto [index, is_new] =
      group_indexes_.try_emplace(std::string(name), static_cast<std::int32_t>(groups_.size()));
  if (is_new) {
    groups_.emplace_back(name);
    name_bytes_ += name.size();
  }
  return index->second;
}

absl::Status SeriesGroups::Prepare(PgConnection& connection,
                                   const std::map<TrialId, SeriesNo>& needed) {
  if (series_count_ > kSeriesMax || name_bytes_ > kNameBytesMax) Clear();
  std::vector<std::int64_t> trials;
  std::vector<std::int32_t> known_counts;
  for (const auto& [trial_id, highest] : needed) {
    const auto known_count = static_cast<std::int32_t>(trials_[trial_id].size());
    if (known_count >= Value(highest)) continue;
    trials.push_back(Value(trial_id));
    known_counts.push_back(known_count);
  }
  if (trials.empty()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(sql::kReadSeriesGroups, {PgArray(trials), PgArray(known_counts)}));
  for (int row = 0; row < rows.row_count(); ++row) {
    std::vector<std::int32_t>& groups = trials_[TrialId{rows.Int64(row, 0)}];
    groups.resize(static_cast<std::size_t>(rows.Int32(row, 1)), 0);
    groups.back() = GroupIndex(rows.Text(row, 2));
    ++series_count_;
  }
  return absl::OkStatus();
}

const std::string& SeriesGroups::GroupOf(TrialId trial_id, SeriesNo series_no) const {
  const auto trial = trials_.find(trial_id);
  const auto index = static_cast<std::size_t>(Value(series_no)) - 1;
  if (trial == trials_.end() || index >= trial->second.size()) return groups_[0];
  return groups_[static_cast<std::size_t>(trial->second[index])];
}

}  // namespace stepwell
