#include "storage/pg_rollup_joiner.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_rollup_read.h"
#include "storage/pg_sweeper_sql.h"
#include "storage/rollup_plan.h"

namespace stepwell {
namespace {

// Of both steps. Some dozens are usual; what an older release left may be thousands.
constexpr std::int64_t kNarrowMax = 256;

SqlText Ring(const char* table, const RowPlace& place) {
  return RollupSegment(table, RollupSegmentOf(place.received_day));
}

// Rollups that a sweep gave up are off the ledger, and gone soon. $1 class, $2 day.
#define STEPWELL_ROLLUPS_ARE_GIVEN_UP                                                      \
  "exists (select from stepwell.swept_leaves where keep_class = $1 and received_day = $2 " \
  "and rollups_too and not emptied)"

constexpr char kAreGivenUp[] = "select " STEPWELL_ROLLUPS_ARE_GIVEN_UP;

// $1 class, $2 day, $3 trial, $4 writer, $5 fewer buckets than this, $6 first series, $7 limit.
SqlText NarrowSql(const SqlText& ring) {
  return SqlCat({"select tick_no, first_time_us, last_time_us, ", RollupGridColumns(), " from ",
                 ring,
                 " where keep_class = $1 and received_day = $2 and trial_id = $3 and "
                 "writer_no = $4 and bucket_count < $5 and first_series_no = any($6) and "
                 "not " STEPWELL_ROLLUPS_ARE_GIVEN_UP " order by tick_no desc limit $7"});
}
constexpr int kNarrowFirstColumn = 3;

// The rows on some grids. $1 trial, $2 writer, $3 numbers of the grids, $4 step, $5 class, $6 and $7 times of the
// grids.
#define STEPWELL_ON_GRIDS                                                                          \
  " m where m.trial_id = $1 and m.writer_no = $2 and m.tick_no = any($3) and m.step_seconds = $4 " \
  "and m.keep_class = $5 and m.first_time_us between $6 and $7"

// By the index of writers and numbers: it costs what lies on the grids, however many series the trial has.
SqlText SeriesSql(const SqlText& ring) {
  return SqlCat({"select distinct m.series_no from ", ring, STEPWELL_ON_GRIDS});
}

// $8: series.
SqlText TakeRowsSql(const SqlText& ring) {
  return SqlCat({"delete from ", ring,
                 STEPWELL_ON_GRIDS " and m.series_no = any($8) returning " STEPWELL_ROLLUPS_BYTES
                                   ", series_no, tick_no, first_time_us, last_time_us, ",
                 RollupColumns()});
}
constexpr int kTakenFirstColumn = 5;

// $1 to $5 as above.
SqlText DropGridsSql(const SqlText& ring) {
  return SqlCat({"delete from ", ring,
                 " t where trial_id = $1 and writer_no = $2 and tick_no = any($3) and "
                 "step_seconds = $4 and keep_class = $5 returning " STEPWELL_ROLLUP_TICKS_BYTES
                 ", first_series_no"});
}

// Those of the stretch that are of the class.
RollupPart PartOf(const Rollup& rollup, const MergeClasses& classes, std::int16_t keep_class) {
  if (classes.by_class().size() == 1) return RollupPart::Of(rollup);
  RollupPart part = {&rollup.grid, rollup.first_time_us, rollup.last_time_us, {}};
  for (const SeriesRollup& series : rollup.series) {
    if (classes.ClassOf(series.series_no) == keep_class) part.series.push_back(&series);
  }
  return part;
}

// Two refs of a writer may be one series. Rows are remembered, and asked for, by their series: of two of one stretch
// readers would take one twice.
bool HasOneTwice(const RollupPart& part) {
  std::vector<SeriesNo> series_nos;
  for (const SeriesRollup* series : part.series) series_nos.push_back(series->series_no);
  std::sort(series_nos.begin(), series_nos.end());
  return std::adjacent_find(series_nos.begin(), series_nos.end()) != series_nos.end();
}

EncodedRollup EncodeParts(const std::vector<RollupPart>& parts) {
  if (parts.size() == 1 && !HasOneTwice(parts.front())) return EncodeRollup(parts.front());
  return EncodeRollup(RollupPart::Of(JoinRollups(parts)));
}

}  // namespace

absl::StatusOr<PgRollupJoiner> PgRollupJoiner::Plan(PgConnection& connection, const RowPlace& place,
                                                    const MergeClasses& classes,
                                                    const std::vector<StretchRollups>& stretches,
                                                    Options options) {
  PgRollupJoiner joiner(place);
  if (stretches.empty()) return joiner;
  for (const auto& [keep_class, series_nos] : classes.by_class()) {
    std::vector<Narrow> narrow;
    const bool may_join =
        options.narrow_rows == NarrowRows::kJoin &&
        (options.look == nullptr ||
         options.look->MayJoin(place.writer_no, keep_class, series_nos, stretches));
    if (may_join) {
      STEPWELL_ASSIGN_OR_RETURN(narrow, joiner.ReadNarrow(connection, keep_class, series_nos));
    }
    joiner.PlanClass(keep_class, stretches, std::move(narrow), options.day);
  }
  if (joiner.joins()) STEPWELL_RETURN_IF_ERROR(joiner.FindSeries(connection));
  return joiner;
}

absl::StatusOr<std::vector<PgRollupJoiner::Narrow>> PgRollupJoiner::ReadNarrow(
    PgConnection& connection, std::int16_t keep_class,
    const std::vector<std::int32_t>& series_nos) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.ExecKept(
          NarrowSql(Ring("rollup_ticks", place_)),
          {keep_class, PgDate{place_.received_day}, Value(place_.trial_id), Value(place_.writer_no),
           static_cast<std::int32_t>(kNarrowRollupBuckets), PgArray(series_nos), kNarrowMax}));
  std::vector<Narrow> narrow;
  for (int row = rows.row_count() - 1; row >= 0; --row) {
    auto grid = RollupGridAt(rows, row, kNarrowFirstColumn);
    // A damaged one stays where it is; whoever reads it is told.
    if (!grid.ok() || grid->buckets.empty()) continue;
    narrow.push_back({.tick_no = rows.Int64(row, 0),
                      .rollup = {.grid = *std::move(grid),
                                 .first_time_us = rows.Int64(row, 1),
                                 .last_time_us = rows.Int64(row, 2),
                                 .series = {}}});
  }
  return narrow;
}

void PgRollupJoiner::PlanClass(std::int16_t keep_class,
                               const std::vector<StretchRollups>& stretches,
                               std::vector<Narrow> narrow, Day day) {
  for (std::size_t step_index = 0; step_index < kRollupSteps.size(); ++step_index) {
    std::vector<RollupPiece> pieces;
    std::vector<Narrow*> of_step;
    for (Narrow& each : narrow) {
      if (each.rollup.grid.step_seconds != kRollupSteps[step_index]) continue;
      of_step.push_back(&each);
      pieces.push_back(
          RollupPiece::Of(each.rollup.grid, each.rollup.first_time_us, each.rollup.last_time_us));
    }
    for (const PlannedRollup& planned :
         PlanRollups(RollupPiecesOf(stretches, step_index), pieces)) {
      Row& row = rows_.emplace_back();
      row.keep_class = keep_class;
      row.step_index = step_index;
      row.first_stretch = planned.first_stretch;
      row.stretch_count = planned.stretch_count;
      for (const std::size_t index : planned.narrow) {
        row.narrow.push_back(std::move(*of_step[index]));
      }
      narrow_count_ += row.narrow.size();
      row.home = HomeOf(row, stretches, day);
    }
  }
}

RollupHome PgRollupJoiner::HomeOf(const Row& row, const std::vector<StretchRollups>& stretches,
                                  Day day) {
  if (day == Day::kIsOver) return RollupHome::kLeaf;
  std::set<std::int64_t> buckets;
  for (const Narrow& narrow : row.narrow) {
    buckets.insert(narrow.rollup.grid.buckets.begin(), narrow.rollup.grid.buckets.end());
  }
  for (std::size_t i = 0; i < row.stretch_count; ++i) {
    const RollupGrid& grid = stretches[row.first_stretch + i][row.step_index].grid;
    buckets.insert(grid.buckets.begin(), grid.buckets.end());
  }
  const bool is_narrow = buckets.size() < static_cast<std::size_t>(kNarrowRollupBuckets);
  return is_narrow ? RollupHome::kRing : RollupHome::kLeaf;
}

absl::Status PgRollupJoiner::FindSeries(PgConnection& connection) {
  std::set<SeriesNo> found;
  for (const Row& row : rows_) {
    if (row.narrow.empty()) continue;
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult rows,
        connection.ExecKept(SeriesSql(Ring("rollups", place_)), RowParams(row)));
    for (int i = 0; i < rows.row_count(); ++i) found.insert(SeriesNo{rows.Int32(i, 0)});
  }
  narrow_series_.assign(found.begin(), found.end());
  return absl::OkStatus();
}

std::vector<PgParam> PgRollupJoiner::GridParams(const Row& row) const {
  std::vector<std::int64_t> tick_nos;
  for (const Narrow& narrow : row.narrow) tick_nos.push_back(narrow.tick_no);
  return {Value(place_.trial_id), Value(place_.writer_no), PgArray(tick_nos),
          static_cast<std::int16_t>(kRollupSteps[row.step_index]), row.keep_class};
}

std::vector<PgParam> PgRollupJoiner::RowParams(const Row& row) const {
  std::int64_t first_time_us = row.narrow.front().rollup.first_time_us;
  std::int64_t last_time_us = row.narrow.front().rollup.last_time_us;
  for (const Narrow& narrow : row.narrow) {
    first_time_us = std::min(first_time_us, narrow.rollup.first_time_us);
    last_time_us = std::max(last_time_us, narrow.rollup.last_time_us);
  }
  std::vector<PgParam> params = GridParams(row);
  params.emplace_back(first_time_us);
  params.emplace_back(last_time_us);
  return params;
}

absl::Status PgRollupJoiner::TakeRows(PgConnection& connection,
                                      const std::vector<std::int32_t>& series_nos,
                                      const SeriesGroups& groups, UsageLedger& usage) {
  if (!joins()) return absl::OkStatus();
  for (Row& row : rows_) {
    if (row.narrow.empty()) continue;
    STEPWELL_RETURN_IF_ERROR(TakeRowsOf(connection, series_nos, groups, row, usage));
  }
  STEPWELL_FAILPOINT("rollup_rows_taken");
  return absl::OkStatus();
}

absl::Status PgRollupJoiner::TakeRowsOf(PgConnection& connection,
                                        const std::vector<std::int32_t>& series_nos,
                                        const SeriesGroups& groups, Row& row, UsageLedger& usage) {
  std::vector<PgParam> params = RowParams(row);
  params.push_back(PgArray(series_nos));
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.ExecKept(TakeRowsSql(Ring("rollups", place_)), std::move(params)));
  for (Narrow& narrow : row.narrow) narrow.rollup.series.clear();
  for (int i = 0; i < rows.row_count(); ++i) {
    const SeriesNo series_no{rows.Int32(i, 1)};
    usage.Subtract({place_.trial_id, place_.received_day, row.keep_class,
                    groups.GroupOf(place_.trial_id, series_no)},
                   {.rollup_byte_count = rows.Int64(i, 0)});
    const std::int64_t tick_no = rows.Int64(i, 2);
    const auto narrow = std::find_if(row.narrow.begin(), row.narrow.end(),
                                     [&](const Narrow& each) { return each.tick_no == tick_no; });
    STEPWELL_ASSIGN_OR_RETURN(RollupColumn column,
                              RollupColumnAt(rows, i, kTakenFirstColumn, narrow->rollup.grid));
    narrow->rollup.series.push_back(
        {series_no, rows.Int64(i, 3), rows.Int64(i, 4), std::move(column)});
  }
  return absl::OkStatus();
}

absl::Status PgRollupJoiner::HoldLines(PgConnection& connection) {
  std::set<std::int16_t> classes;
  for (const Row& row : rows_) {
    if (!row.narrow.empty()) classes.insert(row.keep_class);
  }
  for (const std::int16_t keep_class : classes) {
    STEPWELL_RETURN_IF_ERROR(connection
                                 .Exec(sql::kHoldLines, {Value(place_.trial_id), keep_class,
                                                         PgDate{place_.received_day}})
                                 .status());
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult given_up,
        connection.Exec(kAreGivenUp, {keep_class, PgDate{place_.received_day}}));
    if (given_up.Bool(0, 0)) return absl::UnavailableError("rollups were given up meanwhile");
  }
  return absl::OkStatus();
}

void PgRollupJoiner::CopyInto(const std::vector<MergedStretch>& merged,
                              const std::vector<std::int64_t>& tick_nos,
                              const MergeClasses& classes, MergeCopy& copy) {
  for (Row& row : rows_) {
    std::vector<RollupPart> parts;
    for (const Narrow& narrow : row.narrow) parts.push_back(RollupPart::Of(narrow.rollup));
    for (std::size_t i = 0; i < row.stretch_count; ++i) {
      const Rollup& rollup = merged[row.first_stretch + i].rollups[row.step_index];
      parts.push_back(PartOf(rollup, classes, row.keep_class));
    }
    if (std::all_of(parts.begin(), parts.end(),
                    [](const RollupPart& part) { return part.series.empty(); })) {
      continue;
    }
    RowPlace place = place_;
    place.keep_class = row.keep_class;
    place.tick_no = tick_nos[row.first_stretch];
    copy.AddRollup(place, row.home, EncodeParts(parts), !row.has_grid, classes);
    row.has_grid = true;
  }
}

absl::Status PgRollupJoiner::DropGrids(PgConnection& connection, const SeriesGroups& groups,
                                       UsageLedger& usage) {
  for (const Row& row : rows_) {
    if (row.narrow.empty()) continue;
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult rows,
        connection.ExecKept(DropGridsSql(Ring("rollup_ticks", place_)), GridParams(row)));
    for (int i = 0; i < rows.row_count(); ++i) {
      usage.Subtract({place_.trial_id, place_.received_day, row.keep_class,
                      groups.GroupOf(place_.trial_id, SeriesNo{rows.Int32(i, 1)})},
                     {.rollup_byte_count = rows.Int64(i, 0)});
    }
  }
  return absl::OkStatus();
}

}  // namespace stepwell
