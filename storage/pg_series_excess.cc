#include "storage/pg_series_excess.h"

#include <algorithm>
#include <string>

#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_reader_leaves.h"

namespace stepwell {
namespace {

// A year of hourly rows of one series are 9,000.
constexpr std::size_t kSeriesAtOnce = 50;

constexpr char kLeavesOfTrial[] = R"(
select received_day, keep_class, min(first_time_us), max(last_time_us)
from stepwell.usage where trial_id = $1 and row_count > 0 group by 1, 2)";

// $1 trial, $2 series, $3 bound; the condition of leaves follows. Rows of leaves that wait to be emptied
// were noted as gaps already: they neither count nor go once more.
constexpr char kRankedHead[] = R"(
select series_no, first_time_us, writer_no, tick_no, sample_count, last_time_us, received_day,
       keep_class
from (
  select h.*, sum(h.sample_count) over (
           partition by h.series_no
           order by h.is_recent desc, h.last_time_us desc, h.first_time_us desc, h.tick_no desc
           rows unbounded preceding) - h.sample_count as newer
  from (
    select series_no, first_time_us, writer_no, tick_no, sample_count, last_time_us, received_day,
           keep_class, false as is_recent
    from stepwell.metrics where trial_id = $1 and series_no = any($2)
      and (keep_class, received_day) not in (
        select keep_class, received_day from stepwell.swept_leaves where not emptied) and )";
constexpr char kRankedTail[] = R"(
    union all
    select series_no, first_time_us, writer_no, tick_no, sample_count, last_time_us, received_day,
           keep_class, true
    from stepwell.recent where trial_id = $1 and series_no = any($2)
  ) h
) r
where newer >= $3 and not is_recent
order by received_day, keep_class, last_time_us)";

absl::StatusOr<std::vector<LeafRange>> ReadLeaves(PgConnection& connection, TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection.Exec(kLeavesOfTrial, {Value(trial_id)}));
  std::vector<UsageRecord> lines;
  for (int row = 0; row < rows.row_count(); ++row) {
    UsageRecord& line = lines.emplace_back();
    line.received_day = rows.DateDays(row, 0);
    line.keep_class = static_cast<std::int16_t>(rows.Int32(row, 1));
    line.row_count = 1;
    line.first_time_us = rows.Int64(row, 2);
    line.last_time_us = rows.Int64(row, 3);
  }
  return PickLeaves(lines, INT64_MIN, INT64_MAX);
}

ExcessRows RowsIn(const PgResult& result) {
  ExcessRows rows;
  for (int row = 0; row < result.row_count(); ++row) {
    const LeafKey leaf{static_cast<std::int16_t>(result.Int32(row, 7)), result.DateDays(row, 6)};
    rows[leaf].push_back({.key = {.series_no = result.Int32(row, 0),
                                  .first_time_us = result.Int64(row, 1),
                                  .writer_no = result.Int32(row, 2),
                                  .tick_no = result.Int64(row, 3)},
                          .sample_count = result.Int32(row, 4),
                          .last_time_us = result.Int64(row, 5)});
  }
  return rows;
}

}  // namespace

absl::Status ForEachExcess(
    PgConnection& connection, TrialId trial_id, const std::vector<std::int32_t>& series_nos,
    std::int64_t samples_max,
    const std::function<absl::StatusOr<bool>(const ExcessRows& rows, std::int32_t last)>& each) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<LeafRange> ranges, ReadLeaves(connection, trial_id));
  const LeafCondition leaves = ConditionOf(ranges, 4);
  const SqlText statement = SqlCat({kRankedHead, leaves.sql, kRankedTail});
  for (std::size_t begin = 0; begin < series_nos.size(); begin += kSeriesAtOnce) {
    const std::size_t end = std::min(series_nos.size(), begin + kSeriesAtOnce);
    const std::vector<std::int32_t> some(series_nos.begin() + static_cast<std::ptrdiff_t>(begin),
                                         series_nos.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<PgParam> params = {Value(trial_id), PgArray(some), samples_max};
    params.insert(params.end(), leaves.params.begin(), leaves.params.end());
    STEPWELL_ASSIGN_OR_RETURN(const PgResult result, connection.Exec(statement, params));
    STEPWELL_ASSIGN_OR_RETURN(const bool goes_on, each(RowsIn(result), some.back()));
    if (!goes_on) break;
  }
  return absl::OkStatus();
}

}  // namespace stepwell
