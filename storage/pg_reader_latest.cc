// What the newest rows alone answer: newest samples, and the batches that writers span.
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "storage/pg_reader_leaves.h"
#include "storage/pg_reader_rows.h"
#include "storage/pg_reader_snapshot.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

// The newest sample of one row.
absl::StatusOr<StoredLatest> NewestOf(const StoredRow& row) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<double> values,
                            DecodeValues(row.values, static_cast<std::size_t>(row.sample_count)));
  StoredLatest newest{.series_no = row.series_no, .time_us = INT64_MIN};
  std::size_t value = 0;
  for (std::size_t tick = 0; tick < row.ticks->times_us.size(); ++tick) {
    if (!row.presence.empty() && row.presence[tick] == 0) continue;
    // Later in the row means a later sequence.
    if (row.ticks->times_us[tick] >= newest.time_us) {
      newest.time_us = row.ticks->times_us[tick];
      newest.batch = row.ticks->batches[tick];
      newest.value = values[value];
    }
    ++value;
  }
  return newest;
}

}  // namespace

absl::StatusOr<std::vector<StoredLatest>> PgReaderSnapshot::ReadLatest(
    TrialId trial_id, const std::vector<std::int32_t>& series_nos, FoldNo fold_no_max) {
  STEPWELL_ASSIGN_OR_RETURN(const PgReadMemory::Usage usage, UsageOf(trial_id));
  RowFilter filter;
  filter.trial_id = trial_id;
  filter.series_nos = series_nos;
  filter.fold_no_max = fold_no_max;
  const auto cursor = PgRowCursor::OpenNewest(link_, filter, *usage);
  std::map<SeriesNo, StoredLatest> newest;
  for (;;) {
    STEPWELL_ASSIGN_OR_RETURN(const std::optional<StoredRow> row, cursor->Next());
    if (!row) break;
    const auto known = newest.find(row->series_no);
    if (known != newest.end() && row->last_time_us < known->second.time_us) continue;
    STEPWELL_ASSIGN_OR_RETURN(const StoredLatest latest, NewestOf(*row));
    if (known == newest.end() || latest.time_us >= known->second.time_us) {
      newest[row->series_no] = latest;
    }
  }
  std::vector<StoredLatest> all;
  for (const auto& [series_no, latest] : newest) all.push_back(latest);
  return all;
}

absl::StatusOr<std::vector<WriterBatches>> PgReaderSnapshot::ReadBatchSpans(TrialId trial_id,
                                                                            FoldNo fold_no_max) {
  STEPWELL_ASSIGN_OR_RETURN(const PgReadMemory::Usage usage, UsageOf(trial_id));
  const LeafCondition leaves = ConditionOf(PickLeaves(*usage, INT64_MIN, INT64_MAX), 3);
  std::vector<PgParam> params = {Value(trial_id), Value(fold_no_max)};
  params.insert(params.end(), leaves.params.begin(), leaves.params.end());
  SqlText sql = SqlCat(
      {"select writer_no, min(greatest(first_batch, 0))::integer, max(last_batch)::integer from ("
       "select writer_no, first_batch, last_batch from stepwell.ticks where trial_id = $1 and ",
       leaves.sql,
       " union all select writer_no, first_batch, last_batch from stepwell.recent_ticks"
       " where trial_id = $1 and fold_no <= $2) t where last_batch >= 0"
       " group by writer_no order by writer_no"});
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, link_.RunOne(ReadQuery::kBatchSpans,
                                                                std::move(sql), std::move(params)));
  std::vector<WriterBatches> spans;
  for (int row = 0; row < result.row_count(); ++row) {
    spans.push_back({WriterNo{result.Int32(row, 0)}, result.Int32(row, 1), result.Int32(row, 2)});
  }
  return spans;
}

}  // namespace stepwell
