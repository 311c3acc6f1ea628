// Between which batches a stretch of time lies, by the ticks that reach to its ends.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_reader_leaves.h"
#include "storage/pg_reader_snapshot.h"
#include "storage/pg_reader_ticks.h"

namespace stepwell {
namespace {

// Rows of ticks that are decoded for one end: those of other tick groups may have no batch just there.
constexpr std::int64_t kRowsPerEnd = 3;

// Of a stretch, by index, and the ticks to look at for one of its ends.
struct NearTicks {
  std::size_t stretch = 0;
  TickKey key;
};

// Rows of `table` with a batch, of the writer of one end: before it those that begin there, behind it those that
// end there.
SqlText RowsSql(SqlPiece table, SqlPiece recent, SqlPiece where, SqlPiece reaches) {
  return SqlCat(
      {"select ", recent,
       "::boolean as recent, writer_no, tick_no, keep_class, received_day, first_time_us, "
       "last_time_us, first_batch, tick_count from stepwell.",
       table, " where trial_id = $1 and writer_no = e.w and last_batch >= 0 and ", reaches, " and ",
       where});
}

// For each end the rows whose ticks come nearest to it; of those that come as near the ones that have batches
// throughout, then the densest. `nearness` is the later the nearer.
SqlText ArmSql(SqlPiece times, const SqlText& leaves, SqlPiece reaches, SqlPiece nearness) {
  return SqlCat(
      {"select e.n, r.recent, r.writer_no, r.tick_no, r.keep_class, r.received_day from "
       "unnest($3::integer[], ",
       times, "::bigint[]) with ordinality as e(w, t, n) cross join lateral (select * from (",
       RowsSql("ticks", "false", leaves, reaches), " union all ",
       RowsSql("recent_ticks", "true", "fold_no <= $2", reaches), ") rows order by ", nearness,
       " desc, (first_batch >= 0) desc, tick_count desc, tick_no limit $6) r"});
}

SqlText NearTicksSql(const SqlText& leaves) {
  return SqlCat({ArmSql("$4", leaves, "first_time_us <= e.t", "least(last_time_us, e.t)"),
                 " union ",
                 ArmSql("$5", leaves, "last_time_us >= e.t", "-greatest(first_time_us, e.t)")});
}

absl::StatusOr<std::vector<NearTicks>> NearTicksIn(const PgResult& result, TrialId trial_id,
                                                   std::size_t stretch_count) {
  std::vector<NearTicks> near;
  for (int row = 0; row < result.row_count(); ++row) {
    const auto place = static_cast<std::size_t>(result.Int64(row, 0)) - 1;
    if (place >= stretch_count) return absl::DataLossError("ticks of a stretch that was not asked");
    near.push_back({place,
                    {.trial_id = trial_id,
                     .recent = result.Bool(row, 1),
                     .keep_class = static_cast<std::int16_t>(result.Int32(row, 4)),
                     .received_day = result.DateDays(row, 5),
                     .writer_no = result.Int32(row, 2),
                     .tick_no = result.Int64(row, 3)}});
  }
  return near;
}

}  // namespace

absl::StatusOr<std::vector<BatchesAround>> PgReaderSnapshot::ReadBatchesAround(
    TrialId trial_id, const std::vector<WriterStretch>& stretches, FoldNo fold_no_max) {
  if (stretches.size() > kStretchesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(stretches.size(), " stretches are asked for; allowed: ", kStretchesMax));
  }
  std::vector<BatchesAround> all(stretches.size());
  if (stretches.empty()) return all;
  STEPWELL_ASSIGN_OR_RETURN(const PgReadMemory::Usage usage, UsageOf(trial_id));
  const std::vector<LeafRange> leaves = PickLeaves(*usage, INT64_MIN, INT64_MAX);
  std::vector<std::int32_t> writer_nos;
  std::vector<std::int64_t> first_times;
  std::vector<std::int64_t> last_times;
  for (const WriterStretch& stretch : stretches) {
    writer_nos.push_back(Value(stretch.writer_no));
    first_times.push_back(stretch.first_time_us);
    last_times.push_back(stretch.last_time_us);
  }
  std::vector<PgParam> params = {Value(trial_id),      Value(fold_no_max),  PgArray(writer_nos),
                                 PgArray(first_times), PgArray(last_times), kRowsPerEnd};
  const LeafCondition condition = ConditionOf(leaves, params.size() + 1);
  params.insert(params.end(), condition.params.begin(), condition.params.end());
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult result,
      link_.RunOne(ReadQuery::kBatchesAround, NearTicksSql(condition.sql), std::move(params)));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<NearTicks> near,
                            NearTicksIn(result, trial_id, stretches.size()));

  PgTickCache cache(link_, trial_id, leaves, link_.LeavesBy(leaves));
  std::vector<TickKey> keys;
  for (const NearTicks& one : near) keys.push_back(one.key);
  STEPWELL_RETURN_IF_ERROR(cache.Prepare(keys));
  for (const NearTicks& one : near) {
    const auto ticks = cache.Find(one.key);
    NoteTicks(ticks->times_us, ticks->batches, stretches[one.stretch], all[one.stretch]);
  }
  return all;
}

}  // namespace stepwell
