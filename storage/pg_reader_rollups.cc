#include "storage/pg_reader_rollups.h"

#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_rollup_read.h"
#include "storage/stretch.h"

namespace stepwell {
namespace {

// Rows per round trip: 256 of 360 buckets are about 1 MB.
constexpr char kFetch[] = "fetch forward 256 from stepwell_rollups";
constexpr int kPageRows = 256;
constexpr char kClose[] = "close stepwell_rollups";
// A grid of an hour takes 15 kB.
constexpr std::size_t kGridsMax = 2048;

constexpr char kHeadColumns[] =
    "series_no, writer_no, tick_no, keep_class, received_day, first_time_us";
constexpr int kSeriesNo = 0, kWriterNo = 1, kTickNo = 2, kKeepClass = 3, kReceivedDay = 4,
              kFirstTime = 5;
constexpr int kFirstColumn = 6;
constexpr char kGridHeadColumns[] = "writer_no, tick_no, keep_class, received_day";
constexpr int kGridWriterNo = 0;
constexpr int kGridFirstColumn = 4;

const SqlText& AllColumns() {
  static const SqlText* columns = new SqlText(SqlCat({kHeadColumns, ", ", RollupColumns()}));
  return *columns;
}

}  // namespace

std::unique_ptr<PgRollupCursor> PgRollupCursor::Open(PgReadLink& link, const RollupFilter& filter,
                                                     const std::vector<UsageRecord>& usage,
                                                     LookBack look_back) {
  std::vector<LeafRange> leaves =
      PickLeaves(usage, filter.start_us, filter.end_us, LeafRows::kRollups);
  std::unique_ptr<PgRollupCursor> cursor(new PgRollupCursor(link, filter, std::move(leaves)));
  if (cursor->leaves_.empty()) {
    cursor->ended_ = true;
  } else if (filter.series_nos.size() < kPageRows && cursor->by_ == LeafPlaces::kNamed) {
    cursor->AskFirstPage(look_back);
  } else {
    cursor->DeclareFrom(nullptr);
  }
  return cursor;
}

SqlText PgRollupCursor::SelectSql(Pages pages, Holds holds, LookBack look_back,
                                  const PagePlace* from, std::vector<PgParam>& params) const {
  const SqlPiece columns = holds == Holds::kKeys ? SqlPiece(kHeadColumns) : AllColumns();
  // As RowsBySeriesSql.
  const bool by_series = pages == Pages::kFirst;
  const std::vector<std::int32_t> series_nos =
      from == nullptr ? filter_.series_nos : SeriesFrom(filter_.series_nos, *from);
  params = {Value(filter_.trial_id), PgArray(series_nos),
            static_cast<std::int16_t>(filter_.step_seconds), filter_.start_us, filter_.end_us};
  SqlText more;
  const auto add = [&](PgParam param) {
    params.push_back(std::move(param));
    return SqlParameter(params.size());
  };
  if (filter_.start_us > INT64_MIN + kSlowStretchSpanUs) {
    more = SqlCat({" and first_time_us >= ", add(filter_.start_us - kSlowStretchSpanUs)});
  }
  if (from != nullptr) {
    const SqlText series_no = add(from->series_no);
    more = SqlCat({more, FromPlaceSql(series_nos, series_no, add(from->first_time_us))});
  }
  std::vector<SqlText> arms;
  std::vector<SqlText> ticks;
  TickTimes times = {.start = "$4", .end = "$5"};
  if (look_back == LookBack::kTicks) {
    times.earliest = add(TimeBefore(filter_.start_us, kSlowStretchSpanUs));
    ticks = PlacesOf("rollup_ticks", leaves_, by_, params);
  }
  // Few rows wait to be joined: of those it looks at all that begin a day before.
  for (const SqlText& place : AllPlacesOf("rollups", params)) {
    const SqlText begins =
        arms.size() >= ticks.size()
            ? SqlText("")
            : SqlCat(
                  {" and first_time_us >= ",
                   FirstTimeOf(ticks[arms.size()], "trial_id = $1 and step_seconds = $3", times)});
    arms.push_back(SqlCat(
        {"select ", columns, " from ", place, " and trial_id = $1 and ",
         by_series ? SqlPiece("series_no = wanted.no") : SqlPiece("series_no = any($2)"),
         " and step_seconds = $3 and last_time_us >= $4 and first_time_us < $5", more, begins}));
    if (by_series) {
      arms.back() =
          SqlCat({"select r.* from unnest($2::integer[]) as wanted (no) cross join lateral (",
                  arms.back(), " offset 0) r"});
    }
  }
  return SqlCat({SqlJoin(arms, " union all "), " order by series_no, first_time_us"});
}

std::vector<SqlText> PgRollupCursor::AllPlacesOf(std::string_view table,
                                                 std::vector<PgParam>& params) const {
  std::vector<SqlText> places = PlacesOf(table, leaves_, by_, params);
  for (SqlText& place : WaitingPlacesOf(table, leaves_, by_, params)) {
    places.push_back(std::move(place));
  }
  return places;
}

void PgRollupCursor::AskFirstPage(LookBack look_back) {
  std::vector<PgParam> params;
  first_page_ =
      link_.memory().KnowsRollups(filter_.trial_id, filter_.step_seconds, filter_.series_nos)
          ? Holds::kKeys
          : Holds::kRows;
  SqlText sql = SqlCat({SelectSql(Pages::kFirst, first_page_, look_back, nullptr, params),
                        " limit ", SqlInteger(kPageRows + 1)});
  next_page_ = link_.Queue(ReadQuery::kRollups, std::move(sql), std::move(params), ReadPlan::kOnce);
}

void PgRollupCursor::DeclareFrom(const PagePlace* from) {
  std::vector<PgParam> params;
  SqlText sql = SqlCat({"declare stepwell_rollups no scroll cursor for ",
                        SelectSql(Pages::kAll, Holds::kRows, LookBack::kRows, from, params)});
  link_.PutOff(ReadQuery::kRollups, std::move(sql), std::move(params));
  next_page_ = link_.Queue(ReadQuery::kControl, kFetch, {}, ReadPlan::kOnce);
  is_declared_ = true;
}

PgRollupCursor::~PgRollupCursor() {
  link_.Forget(next_page_);
  if (is_declared_) link_.PutOff(ReadQuery::kControl, kClose, {}, ReadPlan::kOnce);
}

absl::StatusOr<std::optional<StoredRollup>> PgRollupCursor::Next() {
  if (page_row_ == page_rows_) {
    if (ended_) return std::nullopt;
    STEPWELL_RETURN_IF_ERROR(TakePage());
    if (page_rows_ == 0) return std::nullopt;
  }
  if (page_row_ == 0) {
    STEPWELL_RETURN_IF_ERROR(page_holds_ == Holds::kKeys ? ReadUnknown()
                                                         : ReadGrids(page_, page_rows_));
  }
  const int row = page_row_++;
  if (page_holds_ == Holds::kKeys) {
    const auto& [grid, column] = known_[static_cast<std::size_t>(row)];
    return StoredRollup{SeriesNo{page_.Int32(row, kSeriesNo)}, grid, column};
  }
  STEPWELL_ASSIGN_OR_RETURN(StoredRollup rollup, RollupAt(page_, row));
  return std::optional<StoredRollup>(std::move(rollup));
}

absl::Status PgRollupCursor::TakePage() {
  if (next_page_ == 0) next_page_ = link_.Queue(ReadQuery::kControl, kFetch, {}, ReadPlan::kOnce);
  STEPWELL_ASSIGN_OR_RETURN(page_, link_.Take(std::exchange(next_page_, 0)));
  page_row_ = 0;
  page_rows_ = page_.row_count();
  page_holds_ = std::exchange(first_page_, Holds::kRows);
  ended_ = page_rows_ < kPageRows;
  if (is_declared_ || page_rows_ <= kPageRows) {
    ended_ = ended_ || !is_declared_;
    return absl::OkStatus();
  }
  // A first page that is not the last: a cursor goes on with the place that it ends in.
  const int last = page_rows_ - 1;
  const PagePlace place = {page_.Int32(last, kSeriesNo), page_.Int64(last, kFirstTime)};
  page_rows_ = RowsBeforeLastPlace();
  DeclareFrom(&place);
  return page_rows_ == 0 ? TakePage() : absl::OkStatus();
}

int PgRollupCursor::RowsBeforeLastPlace() const {
  int last = page_.row_count() - 1;
  const auto is_there = [&, end = last](int row) {
    return page_.Int32(row, kSeriesNo) == page_.Int32(end, kSeriesNo) &&
           page_.Int64(row, kFirstTime) == page_.Int64(end, kFirstTime);
  };
  while (last >= 0 && is_there(last)) --last;
  return last + 1;
}

TickKey PgRollupCursor::GridKeyAt(const PgResult& result, int row, int first) const {
  return {.trial_id = filter_.trial_id,
          .step_seconds = filter_.step_seconds,
          .keep_class = static_cast<std::int16_t>(result.Int32(row, first + 2)),
          .received_day = result.DateDays(row, first + 3),
          .writer_no = result.Int32(row, first),
          .tick_no = result.Int64(row, first + 1)};
}

RollupKey PgRollupCursor::KeyAt(const PgResult& result, int row) const {
  return {.ticks = GridKeyAt(result, row, kWriterNo),
          .series_no = SeriesNo{result.Int32(row, kSeriesNo)}};
}

absl::Status PgRollupCursor::ReadUnknown() {
  std::vector<RollupKey> keys;
  for (int row = 0; row < page_rows_; ++row) keys.push_back(KeyAt(page_, row));
  known_ = link_.memory().RollupsOf(keys);
  std::vector<int> unknown;
  for (int row = 0; row < page_rows_; ++row) {
    const auto& [grid, column] = known_[static_cast<std::size_t>(row)];
    if (grid == nullptr || column == nullptr) unknown.push_back(row);
  }
  if (unknown.empty()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, ReadRowsOf(unknown));
  STEPWELL_RETURN_IF_ERROR(ReadGrids(result, result.row_count()));
  absl::flat_hash_map<RollupKey, PgReadMemory::KnownRollup> read;
  for (int row = 0; row < result.row_count(); ++row) {
    STEPWELL_ASSIGN_OR_RETURN(StoredRollup stored, RollupAt(result, row));
    read[KeyAt(result, row)] = {std::move(stored.grid), std::move(stored.column)};
  }
  for (const int row : unknown) {
    const auto found = read.find(keys[static_cast<std::size_t>(row)]);
    if (found == read.end()) {
      return absl::DataLossError(absl::StrCat("rollup of series ", page_.Int32(row, kSeriesNo),
                                              ": it is gone within a snapshot"));
    }
    known_[static_cast<std::size_t>(row)] = found->second;
  }
  return absl::OkStatus();
}

absl::StatusOr<PgResult> PgRollupCursor::ReadRowsOf(const std::vector<int>& page_rows) {
  std::vector<std::int32_t> series_nos;
  std::vector<std::int32_t> writer_nos;
  std::vector<std::int64_t> tick_nos;
  std::vector<std::int64_t> first_times_us;
  for (const int row : page_rows) {
    series_nos.push_back(page_.Int32(row, kSeriesNo));
    writer_nos.push_back(page_.Int32(row, kWriterNo));
    tick_nos.push_back(page_.Int64(row, kTickNo));
    first_times_us.push_back(page_.Int64(row, kFirstTime));
  }
  std::vector<PgParam> params = {Value(filter_.trial_id),
                                 static_cast<std::int16_t>(filter_.step_seconds)};
  params.emplace_back(PgArray(series_nos));
  params.emplace_back(PgArray(first_times_us));
  params.emplace_back(PgArray(writer_nos));
  params.emplace_back(PgArray(tick_nos));
  std::vector<SqlText> arms;
  for (const SqlText& place : AllPlacesOf("rollups", params)) {
    arms.push_back(SqlCat(
        {"select r.* from unnest($3::integer[], $4::bigint[], $5::integer[], $6::bigint[]) "
         "as wanted (no, f, w, n) cross join lateral (select ",
         AllColumns(), " from ", place,
         " and trial_id = $1 and step_seconds = $2 and series_no = wanted.no "
         "and first_time_us = wanted.f and writer_no = wanted.w and tick_no = wanted.n offset 0) "
         "r"}));
  }
  return link_.RunOne(ReadQuery::kRollups, SqlJoin(arms, " union all "), std::move(params),
                      ReadPlan::kOnce);
}

absl::Status PgRollupCursor::ReadGrids(const PgResult& rows, int row_count) {
  static const SqlText kColumns = SqlCat({kGridHeadColumns, ", ", RollupGridColumns()});
  if (grids_.size() > kGridsMax) grids_.clear();
  std::set<std::pair<std::int32_t, std::int64_t>> missing;
  for (int row = 0; row < row_count; ++row) {
    const TickKey key = GridKeyAt(rows, row, kWriterNo);
    if (grids_.contains(key)) continue;
    if (auto known = link_.memory().GridOf(key)) {
      grids_[key] = std::move(known);
    } else {
      missing.emplace(key.writer_no, key.tick_no);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  std::vector<std::int32_t> writer_nos;
  std::vector<std::int64_t> tick_nos;
  for (const auto& [writer_no, tick_no] : missing) {
    writer_nos.push_back(writer_no);
    tick_nos.push_back(tick_no);
  }
  std::vector<PgParam> params = {Value(filter_.trial_id), PgArray(writer_nos), PgArray(tick_nos),
                                 static_cast<std::int16_t>(filter_.step_seconds)};
  std::vector<SqlText> arms;
  for (const SqlText& place : AllPlacesOf("rollup_ticks", params)) {
    // Each by the index, however few rows PostgreSQL believes there to be.
    arms.push_back(SqlCat(
        {"select t.* from unnest($2::integer[], $3::bigint[]) as wanted (w, n) cross join lateral "
         "(select ",
         kColumns, " from ", place,
         " and trial_id = $1 and writer_no = wanted.w and tick_no = wanted.n and step_seconds = $4 "
         "offset 0) t"}));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult result,
      link_.RunOne(ReadQuery::kRollupGrids, SqlJoin(arms, " union all "), std::move(params),
                   by_ == LeafPlaces::kNamed ? ReadPlan::kOnce : ReadPlan::kForValues));
  for (int row = 0; row < result.row_count(); ++row) {
    STEPWELL_ASSIGN_OR_RETURN(RollupGrid grid, RollupGridAt(result, row, kGridFirstColumn));
    const TickKey key = GridKeyAt(result, row, kGridWriterNo);
    auto read = std::make_shared<const RollupGrid>(std::move(grid));
    link_.memory().NoteGrid(key, read, link_.memory_age());
    grids_[key] = std::move(read);
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredRollup> PgRollupCursor::RollupAt(const PgResult& rows, int row) const {
  const RollupKey key = KeyAt(rows, row);
  const auto grid = grids_.find(key.ticks);
  if (grid == grids_.end()) {
    return absl::DataLossError(absl::StrCat("rollup of series ", Value(key.series_no),
                                            ": its ticks ", key.ticks.tick_no, " do not exist"));
  }
  STEPWELL_ASSIGN_OR_RETURN(RollupColumn column,
                            RollupColumnAt(rows, row, kFirstColumn, *grid->second));
  StoredRollup stored = {key.series_no, grid->second,
                         std::make_shared<const RollupColumn>(std::move(column))};
  // Pages behind the first are many: they would push out what charts ask for again.
  if (!is_declared_) link_.memory().NoteRollup(key, stored.column, link_.memory_age());
  return stored;
}

}  // namespace stepwell
