// SeriesGroups: which metric group each series belongs to, for the ledger. Series never change
// theirs, so what was read once stays true until the master forgets it. Confined to one thread.
//
//   STEPWELL_RETURN_IF_ERROR(groups.Prepare(connection, {{trial, highest_series_no}}));
//   groups.GroupOf(trial, series_no)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "storage/model.h"
#include "storage/pg_connection.h"

namespace stepwell {

class SeriesGroups {
 public:
  // Reads what is missing up to these numbers; one statement, none if nothing is.
  absl::Status Prepare(PgConnection& connection, const std::map<TrialId, SeriesNo>& needed);
  // "" for a series that does not exist.
  const std::string& GroupOf(TrialId trial_id, SeriesNo series_no) const;
  // After any failure, and when another trial may have taken a number.
  void Clear() {
    // Their names as well: those of a trial may be as many as its series.
    groups_ = {""};
    group_indexes_ = {{"", 0}};
    name_bytes_ = 0;
    trials_.clear();
    series_count_ = 0;
  }
  // The "" of series that do not exist is one.
  std::size_t group_count() const { return groups_.size(); }

 private:
  // 16 MB, and the names of the groups twice.
  static constexpr std::size_t kSeriesMax = 4'000'000;
  static constexpr std::size_t kNameBytesMax = 32 << 20;
  std::int32_t GroupIndex(std::string_view name);

  std::vector<std::string> groups_ = {""};
  absl::flat_hash_map<std::string, std::int32_t> group_indexes_ = {{"", 0}};
  // Of series 1, 2, ...
  absl::flat_hash_map<TrialId, std::vector<std::int32_t>> trials_;
  std::size_t series_count_ = 0;
  std::size_t name_bytes_ = 0;
};

}  // namespace stepwell
