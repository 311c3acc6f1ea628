#include "storage/pg_reader_rollups.h"

#include <set>
#include <string>
#include <utility>

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

constexpr char kHeadColumns[] = "series_no, writer_no, tick_no, keep_class, received_day";
constexpr int kSeriesNo = 0, kWriterNo = 1, kTickNo = 2, kKeepClass = 3, kReceivedDay = 4;
constexpr int kFirstColumn = 5;
constexpr char kGridHeadColumns[] = "writer_no, tick_no, keep_class, received_day";
constexpr int kGridFirstColumn = 4;

}  // namespace

std::unique_ptr<PgRollupCursor> PgRollupCursor::Open(PgReadLink& link, const RollupFilter& filter,
                                                     const std::vector<UsageRecord>& usage) {
  static const std::string kColumns = absl::StrCat(kHeadColumns, ", ", RollupColumns());
  const std::vector<LeafRange> leaves =
      PickLeaves(usage, filter.start_us, filter.end_us, LeafRows::kRollups);
  std::vector<PgParam> params = {Value(filter.trial_id), PgArray(filter.series_nos),
                                 static_cast<std::int16_t>(filter.step_seconds), filter.start_us,
                                 filter.end_us};
  std::string look_back;
  if (filter.start_us > INT64_MIN + kSlowStretchSpanUs) {
    params.emplace_back(filter.start_us - kSlowStretchSpanUs);
    look_back = " and first_time_us >= $6";
  }
  LeafCondition condition = ConditionOf(leaves, static_cast<int>(params.size()) + 1);
  params.insert(params.end(), condition.params.begin(), condition.params.end());
  std::string sql = absl::StrCat(
      "declare stepwell_rollups no scroll cursor for select ", kColumns,
      " from stepwell.rollups where trial_id = $1 and series_no = any($2) and step_seconds = $3 "
      "and last_time_us >= $4 and first_time_us < $5",
      look_back, " and ", condition.sql, " order by series_no");
  link.PutOff(ReadQuery::kRollups, std::move(sql), std::move(params));
  std::unique_ptr<PgRollupCursor> cursor(new PgRollupCursor(link, filter, leaves));
  cursor->next_page_ = link.Queue(ReadQuery::kControl, kFetch);
  return cursor;
}

PgRollupCursor::~PgRollupCursor() {
  link_.Forget(next_page_);
  link_.PutOff(ReadQuery::kControl, kClose);
}

absl::StatusOr<std::optional<StoredRollup>> PgRollupCursor::Next() {
  if (page_row_ == page_.row_count()) {
    if (ended_) return std::nullopt;
    STEPWELL_RETURN_IF_ERROR(TakePage());
    if (page_.row_count() == 0) return std::nullopt;
  }
  if (page_row_ == 0) STEPWELL_RETURN_IF_ERROR(ReadGrids());
  STEPWELL_ASSIGN_OR_RETURN(StoredRollup rollup, RollupAt(page_row_++));
  return std::optional<StoredRollup>(std::move(rollup));
}

absl::Status PgRollupCursor::TakePage() {
  if (next_page_ == 0) next_page_ = link_.Queue(ReadQuery::kControl, kFetch);
  STEPWELL_ASSIGN_OR_RETURN(page_, link_.Take(std::exchange(next_page_, 0)));
  page_row_ = 0;
  ended_ = page_.row_count() < kPageRows;
  return absl::OkStatus();
}

PgRollupCursor::GridKey PgRollupCursor::GridKeyAt(int row) const {
  return {static_cast<std::int16_t>(page_.Int32(row, kKeepClass)),
          page_.DateDays(row, kReceivedDay), page_.Int32(row, kWriterNo),
          page_.Int64(row, kTickNo)};
}

absl::Status PgRollupCursor::ReadGrids() {
  static const std::string kColumns = absl::StrCat(kGridHeadColumns, ", ", RollupGridColumns());
  if (grids_.size() > kGridsMax) grids_.clear();
  std::set<std::pair<std::int32_t, std::int64_t>> missing;
  for (int row = 0; row < page_.row_count(); ++row) {
    const GridKey key = GridKeyAt(row);
    if (!grids_.contains(key)) missing.emplace(std::get<2>(key), std::get<3>(key));
  }
  if (missing.empty()) return absl::OkStatus();
  std::vector<std::int32_t> writer_nos;
  std::vector<std::int64_t> tick_nos;
  for (const auto& [writer_no, tick_no] : missing) {
    writer_nos.push_back(writer_no);
    tick_nos.push_back(tick_no);
  }
  std::vector<PgParam> params = {Value(trial_id_), PgArray(writer_nos), PgArray(tick_nos),
                                 static_cast<std::int16_t>(step_seconds_)};
  LeafCondition condition = ConditionOf(leaves_, static_cast<int>(params.size()) + 1);
  params.insert(params.end(), condition.params.begin(), condition.params.end());
  std::string sql = absl::StrCat(
      "select ", kColumns,
      " from stepwell.rollup_ticks where trial_id = $1 and (writer_no, tick_no) "
      "in (select * from unnest($2::integer[], $3::bigint[])) and step_seconds = $4 and ",
      condition.sql);
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, link_.RunOne(ReadQuery::kRollupGrids,
                                                                std::move(sql), std::move(params)));
  for (int row = 0; row < result.row_count(); ++row) {
    STEPWELL_ASSIGN_OR_RETURN(RollupGrid grid, RollupGridAt(result, row, kGridFirstColumn));
    const GridKey key = {static_cast<std::int16_t>(result.Int32(row, 2)), result.DateDays(row, 3),
                         result.Int32(row, 0), result.Int64(row, 1)};
    grids_[key] = std::make_shared<const RollupGrid>(std::move(grid));
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredRollup> PgRollupCursor::RollupAt(int row) const {
  const auto grid = grids_.find(GridKeyAt(row));
  if (grid == grids_.end()) {
    return absl::DataLossError(absl::StrCat("rollup of series ", page_.Int32(row, kSeriesNo),
                                            ": its ticks ", page_.Int64(row, kTickNo),
                                            " do not exist"));
  }
  StoredRollup stored;
  stored.series_no = SeriesNo{page_.Int32(row, kSeriesNo)};
  stored.grid = grid->second;
  STEPWELL_ASSIGN_OR_RETURN(stored.column, RollupColumnAt(page_, row, kFirstColumn, *stored.grid));
  return stored;
}

}  // namespace stepwell
