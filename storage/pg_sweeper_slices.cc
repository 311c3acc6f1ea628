#include "storage/pg_sweeper_slices.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_rollup_move.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_sweeper_sql.h"

namespace stepwell {
namespace {

// Rows of one transaction: 10 to 50 ms, with their values in TOAST.
constexpr std::int64_t kSliceRowsMax = 1000;
constexpr int kStretchesAtOnce = 64;

SqlText RowsLeaf(const NamedLeaf& leaf) {
  return LeafTable(leaf.pair == LeafPair::kSamples ? "metrics" : "rollups", leaf.key.keep_class,
                   leaf.key.received_day);
}
SqlText TicksLeaf(const NamedLeaf& leaf) {
  return LeafTable(leaf.pair == LeafPair::kSamples ? "ticks" : "rollup_ticks", leaf.key.keep_class,
                   leaf.key.received_day);
}

// Rollups go when no sample of theirs is left: those of a merge that came meanwhile are seen with it or
// not at all.
SqlText NoRowIsLeft(const NamedLeaf& leaf) {
  return SqlCat({" and not exists (select from stepwell.metrics m where m.keep_class = ",
                 SqlInteger(leaf.key.keep_class), " and m.received_day = ",
                 SqlDay(leaf.key.received_day), " and m.trial_id = $1 and m.series_no = any($6))"});
}

// $1 trial, $2 to $4 after this first time, tick_no and step, $5 limit, $6 only with these series.
SqlText StretchesSql(const NamedLeaf& leaf, bool of_group) {
  const bool of_samples = leaf.pair == LeafPair::kSamples;
  const SqlText step = of_samples ? SqlText("0::smallint") : SqlText("t.step_seconds");
  return SqlCat(
      {"select t.writer_no, t.tick_no, ", step, ", t.first_time_us, t.last_time_us, ",
       of_samples ? SqlPiece("t.series_nos") : SqlPiece("null::integer[]"), " from ",
       TicksLeaf(leaf), " t where t.trial_id = $1 and (t.first_time_us, t.tick_no, ", step,
       ") > ($2, $3, $4) and ",
       of_samples ? SqlPiece(STEPWELL_MERGE_IS_OVER) : SqlPiece(STEPWELL_ROLLUPS_ARE_MADE),
       of_samples && of_group ? SqlPiece(" and (t.series_nos is null or t.series_nos && $6)")
                              : SqlPiece(" and $6::integer[] is not null"),
       of_samples ? SqlText() : NoRowIsLeft(leaf), " order by t.first_time_us, t.tick_no, ", step,
       " limit $5"});
}

// What went, by group: rows, samples, bytes, first and last time.
SqlText SumGone(SqlPiece group) {
  return SqlCat(
      {" select coalesce(s.metric_group, ''), count(*), "
       "coalesce(sum(g.sample_count), 0)::bigint, sum(g.bytes)::bigint, "
       "min(g.first_time_us), max(g.last_time_us) from gone g "
       "left join stepwell.series s on s.trial_id = $1 and s.series_no = ",
       group, " group by 1"});
}

SqlText Returning(const NamedLeaf& leaf) {
  return leaf.pair == LeafPair::kSamples
             ? SqlText(
                   " returning m.series_no, m.sample_count, m.first_time_us, "
                   "m.last_time_us, " STEPWELL_METRICS_BYTES " as bytes)")
             : SqlText(
                   " returning m.series_no, 0 as sample_count, m.first_time_us, "
                   "m.last_time_us, " STEPWELL_ROLLUPS_BYTES " as bytes)");
}

// $1 trial, $2 series, $3 and $4 times of the ticks, $5 writer, $6 tick_no, $7 step.
SqlText DeleteRowsSql(const NamedLeaf& leaf) {
  return SqlCat({"with gone as (delete from ", RowsLeaf(leaf),
                 " m where m.trial_id = $1 and m.series_no = any($2) and m.first_time_us "
                 "between $3 and $4 and m.writer_no = $5 and m.tick_no = $6 and ",
                 leaf.pair == LeafPair::kSamples ? SqlPiece("$7::smallint = 0")
                                                 : SqlPiece("m.step_seconds = $7"),
                 Returning(leaf), SumGone("g.series_no")});
}

// $1 trial, $2 series, $3 first times, $4 numbers of ticks. Rows on ticks of a merge under way stay:
// whoever takes the last row takes the ticks, too.
SqlText DeleteKeysSql(const NamedLeaf& leaf) {
  return SqlCat({"with gone as (delete from ", RowsLeaf(leaf),
                 " m using unnest($2::integer[], $3::bigint[], $4::bigint[]) as k (series_no, "
                 "first_time_us, tick_no) where m.trial_id = $1 and m.series_no = k.series_no "
                 "and m.first_time_us = k.first_time_us and m.tick_no = k.tick_no and exists "
                 "(select from ",
                 TicksLeaf(leaf),
                 " t where t.trial_id = m.trial_id and t.writer_no = m.writer_no and "
                 "t.tick_no = m.tick_no and " STEPWELL_MERGE_IS_OVER ")",
                 Returning(leaf), SumGone("g.series_no")});
}

// Ticks that no row refers to any more. $1 trial, $2 writers, $3 numbers of ticks, $4 steps, $5 series
// that may be on ticks of an earlier release.
SqlText DeleteTicksSql(const NamedLeaf& leaf) {
  const bool of_samples = leaf.pair == LeafPair::kSamples;
  const SqlText of_step = of_samples ? SqlText() : SqlText(" and t.step_seconds = k.step_seconds");
  const SqlText series = of_samples ? SqlText("coalesce(t.series_nos, $5)") : SqlText("$5");
  const SqlText is_over =
      of_samples ? SqlText(") and " STEPWELL_MERGE_IS_OVER)
                 : SqlText(" and m.step_seconds = t.step_seconds) and " STEPWELL_ROLLUPS_ARE_MADE);
  const SqlText first = of_samples ? SqlText("t.series_nos[1]") : SqlText("t.first_series_no");
  const SqlText bytes =
      of_samples ? SqlText(STEPWELL_TICKS_BYTES) : SqlText(STEPWELL_ROLLUP_TICKS_BYTES);
  return SqlCat(
      {"with gone as (delete from ", TicksLeaf(leaf),
       " t using unnest($2::integer[], $3::bigint[], $4::smallint[]) as k (writer_no, tick_no, "
       "step_seconds) where t.trial_id = $1 and t.writer_no = k.writer_no and t.tick_no = "
       "k.tick_no",
       of_step, " and not exists (select from ", RowsLeaf(leaf),
       " m where m.trial_id = t.trial_id and m.series_no = any(", series,
       ") and m.first_time_us between t.first_time_us and t.last_time_us and m.tick_no = t.tick_no",
       is_over, " returning ", first,
       " as first_series_no, 0 as sample_count, 0::bigint as first_time_us, "
       "0::bigint as last_time_us, ",
       bytes, " as bytes)", SumGone("coalesce(g.first_series_no, ($5::integer[])[1])")});
}

std::vector<std::int32_t> ToInt32(const std::vector<std::int64_t>& values) {
  std::vector<std::int32_t> narrow;
  for (const std::int64_t value : values) narrow.push_back(static_cast<std::int32_t>(value));
  return narrow;
}

}  // namespace

struct PgSliceSweeper::Slice {
  explicit Slice(const SliceTarget& target, const NamedLeaf& named)
      : leaf(named), trial_id(target.trial_id), field(target.field) {}
  // The rows that SumGone sums up; ticks count no rows.
  void Add(const PgResult& sums, bool of_ticks) {
    for (int row = 0; row < sums.row_count(); ++row) {
      const bool of_samples = leaf.pair == LeafPair::kSamples;
      const std::int64_t samples = sums.Int64(row, 2), bytes = sums.Int64(row, 3);
      CapRemoval& gone = removed[std::string(sums.Text(row, 0))];
      UsageChange change;
      gone.sample_count += samples;
      (of_samples ? gone.raw_bytes : gone.rollup_bytes) += bytes;
      (of_samples ? change.byte_count : change.rollup_byte_count) = bytes;
      if (!of_ticks && of_samples) {
        const bool is_first = gone.first_time_us == 0 && gone.last_time_us == 0;
        const std::int64_t first = sums.Int64(row, 4), last = sums.Int64(row, 5);
        gone.first_time_us = is_first ? first : std::min(gone.first_time_us, first);
        gone.last_time_us = is_first ? last : std::max(gone.last_time_us, last);
        change.row_count = sums.Int64(row, 1);
        change.sample_count = samples;
        change.removed_sample_count = -samples;
      }
      usage.Subtract(
          {trial_id, leaf.key.received_day, leaf.key.keep_class, std::string(sums.Text(row, 0))},
          change);
      bytes_gone += bytes;
    }
  }

  const NamedLeaf leaf;
  const TrialId trial_id;
  const std::string field;
  UsageLedger usage;
  std::map<std::string, CapRemoval> removed;
  std::int64_t bytes_gone = 0;
};

absl::StatusOr<std::int64_t> PgSliceSweeper::FreeBytes(const SliceTarget& target,
                                                       const NamedLeaf& leaf,
                                                       std::int64_t bytes_wanted,
                                                       std::int64_t row_bytes) {
  if (leaf.pair == LeafPair::kRollups) {
    STEPWELL_RETURN_IF_ERROR(TakeInRollups(target.trial_id, leaf.key));
  }
  std::int64_t freed = 0;
  Stretch after{.tick_no = INT64_MIN, .first_time_us = INT64_MIN};
  std::deque<Stretch> stretches;
  // One slice at least: to find out how much must go may have taken all the time.
  for (bool is_first = true; freed < bytes_wanted && (is_first || !pace_.IsOver());
       is_first = false) {
    if (stretches.empty()) {
      STEPWELL_ASSIGN_OR_RETURN(stretches, ReadStretches(target, leaf, after));
      if (stretches.empty()) break;
      after = stretches.back();
    }
    Slice slice(target, leaf);
    const absl::Status swept =
        InSweepTransaction(connection_, owner_epoch_, result_.removed,
                           [&](std::vector<CapRemoval>& removed) -> absl::Status {
                             STEPWELL_RETURN_IF_ERROR(TakeSlice(target, leaf, bytes_wanted - freed,
                                                                row_bytes, stretches, slice));
                             return Finish(target, slice, removed);
                           });
    STEPWELL_RETURN_IF_ERROR(swept);
    freed += slice.bytes_gone;
  }
  return freed;
}

// Those that wait to be joined, too.
absl::Status PgSliceSweeper::TakeInRollups(TrialId trial_id, const LeafKey& key) {
  const RollupMove move = {.leaf = key, .trial_id = trial_id};
  std::int64_t moved = 0;
  // Once at least, as slices.
  do {
    CapRemovals nothing;
    const auto body = [&](std::vector<CapRemoval>&) -> absl::Status {
      STEPWELL_ASSIGN_OR_RETURN(moved, MoveRollups(connection_, move));
      return absl::OkStatus();
    };
    STEPWELL_RETURN_IF_ERROR(InSweepTransaction(connection_, owner_epoch_, nothing, body));
  } while (moved > 0 && !pace_.IsOver());
  return absl::OkStatus();
}

absl::StatusOr<std::deque<PgSliceSweeper::Stretch>> PgSliceSweeper::ReadStretches(
    const SliceTarget& target, const NamedLeaf& leaf, const Stretch& after) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection_.Exec(
          StretchesSql(leaf, target.is_group),
          {Value(target.trial_id), after.first_time_us, after.tick_no, after.step_seconds,
           std::int64_t{kStretchesAtOnce}, PgArray(target.series_nos)}));
  std::deque<Stretch> stretches;
  for (int row = 0; row < rows.row_count(); ++row) {
    Stretch& stretch = stretches.emplace_back();
    stretch.writer_no = rows.Int32(row, 0);
    stretch.tick_no = rows.Int64(row, 1);
    stretch.step_seconds = static_cast<std::int16_t>(rows.Int32(row, 2));
    stretch.first_time_us = rows.Int64(row, 3);
    stretch.last_time_us = rows.Int64(row, 4);
    if (rows.IsNull(row, 5)) {
      stretch.series_nos = target.series_nos;
      continue;
    }
    const std::vector<std::int32_t> on_ticks = ToInt32(rows.Int64Array(row, 5));
    std::set_intersection(on_ticks.begin(), on_ticks.end(), target.series_nos.begin(),
                          target.series_nos.end(), std::back_inserter(stretch.series_nos));
  }
  return stretches;
}

absl::Status PgSliceSweeper::TakeSlice(const SliceTarget& target, const NamedLeaf& leaf,
                                       std::int64_t bytes_wanted, std::int64_t row_bytes,
                                       std::deque<Stretch>& stretches, Slice& slice) {
  std::int64_t rows_left = kSliceRowsMax;
  std::vector<Stretch> touched;
  while (rows_left > 0 && slice.bytes_gone < bytes_wanted && !stretches.empty()) {
    Stretch& stretch = stretches.front();
    // Near the end by single rows, so that no more goes than has to.
    const std::int64_t rows_wanted =
        (bytes_wanted - slice.bytes_gone) / std::max<std::int64_t>(1, row_bytes) + 1;
    const auto count =
        std::min({static_cast<std::int64_t>(stretch.series_nos.size() - stretch.done), rows_left,
                  rows_wanted});
    const auto begin = stretch.series_nos.begin() + static_cast<std::ptrdiff_t>(stretch.done);
    STEPWELL_RETURN_IF_ERROR(DeleteRows(target, leaf, stretch, {begin, begin + count}, slice));
    stretch.done += static_cast<std::size_t>(count);
    rows_left -= std::max<std::int64_t>(1, count);
    if (stretch.done < stretch.series_nos.size()) continue;
    touched.push_back(std::move(stretch));
    stretches.pop_front();
  }
  // Of the one that is left in part none of the series that are left may have a row.
  if (!stretches.empty() && stretches.front().done > 0) touched.push_back(stretches.front());
  return DeleteTicks(target, leaf, touched, slice);
}

absl::Status PgSliceSweeper::DeleteRows(const SliceTarget& target, const NamedLeaf& leaf,
                                        const Stretch& stretch,
                                        const std::vector<std::int32_t>& series_nos, Slice& slice) {
  if (series_nos.empty()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult sums,
      connection_.Exec(
          DeleteRowsSql(leaf),
          {Value(target.trial_id), PgArray(series_nos), stretch.first_time_us, stretch.last_time_us,
           stretch.writer_no, stretch.tick_no, stretch.step_seconds}));
  slice.Add(sums, /*of_ticks=*/false);
  return absl::OkStatus();
}

absl::Status PgSliceSweeper::DeleteTicks(const SliceTarget& target, const NamedLeaf& leaf,
                                         const std::vector<Stretch>& touched, Slice& slice) {
  if (touched.empty()) return absl::OkStatus();
  std::vector<std::int32_t> writers;
  std::vector<std::int64_t> numbers;
  std::vector<std::int16_t> steps;
  for (const Stretch& stretch : touched) {
    writers.push_back(stretch.writer_no);
    numbers.push_back(stretch.tick_no);
    steps.push_back(stretch.step_seconds);
  }
  // Rows of the whole trial may refer to them.
  std::vector<std::int32_t> all = target.series_nos;
  if (target.is_group) {
    STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                              connection_.Exec(sql::kListSeriesOf, {Value(target.trial_id), ""}));
    all.clear();
    for (int row = 0; row < rows.row_count(); ++row) all.push_back(rows.Int32(row, 0));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult sums,
      connection_.Exec(DeleteTicksSql(leaf), {Value(target.trial_id), PgArray(writers),
                                              PgArray(numbers), PgArray(steps), PgArray(all)}));
  slice.Add(sums, /*of_ticks=*/true);
  return absl::OkStatus();
}

absl::Status PgSliceSweeper::Finish(const SliceTarget& target, Slice& slice,
                                    std::vector<CapRemoval>& removed) {
  for (auto& [group, gone] : slice.removed) {
    gone.trial_id = target.trial_id;
    gone.metric_group = group;
    gone.field = target.field;
    removed.push_back(gone);
  }
  STEPWELL_RETURN_IF_ERROR(WriteUsage(connection_, slice.usage));
  return NoteGaps(connection_, removed);
}

absl::StatusOr<std::int64_t> PgSliceSweeper::RemoveRows(const SliceTarget& target,
                                                        const LeafKey& key,
                                                        const std::vector<RowKey>& rows) {
  const NamedLeaf leaf{LeafPair::kSamples, key};
  std::int64_t freed = 0;
  // One slice at least: to find the rows may have taken all the time.
  for (std::size_t begin = 0; begin < rows.size(); begin += kSliceRowsMax) {
    if (begin > 0 && pace_.IsOver()) break;
    const std::size_t end = std::min(rows.size(), begin + kSliceRowsMax);
    std::vector<std::int32_t> series;
    std::vector<std::int64_t> firsts, numbers;
    std::map<std::pair<std::int32_t, std::int64_t>, Stretch> touched;
    for (std::size_t i = begin; i < end; ++i) {
      series.push_back(rows[i].series_no);
      firsts.push_back(rows[i].first_time_us);
      numbers.push_back(rows[i].tick_no);
      touched[{rows[i].writer_no, rows[i].tick_no}] = {.writer_no = rows[i].writer_no,
                                                       .tick_no = rows[i].tick_no};
    }
    std::vector<Stretch> stretches;
    for (auto& [writer_and_tick, stretch] : touched) stretches.push_back(stretch);
    Slice slice(target, leaf);
    const absl::Status swept = InSweepTransaction(
        connection_, owner_epoch_, result_.removed,
        [&](std::vector<CapRemoval>& removed) -> absl::Status {
          STEPWELL_ASSIGN_OR_RETURN(
              const PgResult sums,
              connection_.Exec(DeleteKeysSql(leaf), {Value(target.trial_id), PgArray(series),
                                                     PgArray(firsts), PgArray(numbers)}));
          slice.Add(sums, /*of_ticks=*/false);
          STEPWELL_RETURN_IF_ERROR(DeleteTicks(target, leaf, stretches, slice));
          return Finish(target, slice, removed);
        });
    STEPWELL_RETURN_IF_ERROR(swept);
    freed += slice.bytes_gone;
  }
  return freed;
}

}  // namespace stepwell
