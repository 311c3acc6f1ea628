#include "storage/pg_reader_rows.h"

#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_reader_sql.h"
#include "storage/presence.h"

namespace stepwell {
namespace {

// Rows per round trip: 256 of 3600 samples are about 2 MB, 8 MB where nothing can be packed.
constexpr char kFetch[] = "fetch forward 256 from stepwell_rows";
constexpr int kPageRows = 256;
constexpr char kClose[] = "close stepwell_rows";
// No row spans more: what makes a read of a range look back only so far in the index.
constexpr std::int64_t kRowSpanUs = 24 * INT64_C(3'600'000'000);
// Of a series in one place, those that end last: several may end at one time.
constexpr int kNewestRows = 8;

// After the leading column that tells recent from merged, in the order of sql::kRowHead.
enum Column {
  kRecent,
  kTrialId,
  kSeriesNo,
  kWriterNo,
  kTickNo,
  kFirstTime,
  kLastTime,
  kSampleCount,
  kNanCount,
  kMin,
  kMax,
  kSum,
  kLast,
  kForm,
  kWidth,
  kWidth2,
  kBase,
  kFactor,
  kDivisorExponent,
  kReceivedDay,
  kKeepClass,
  kWhole,
  kBits,
  kBits2,
  kDictionary,
  kRaw,
  kPresence,
};
constexpr VectorColumns kValues = {kForm, kWidth, kWidth2,     kBase, kFactor, kDivisorExponent,
                                   kBits, kBits2, kDictionary, kRaw};

// Builds one statement: placeholders are numbered as parameters are added.
struct Statement {
  SqlText Add(PgParam param) {
    params.push_back(std::move(param));
    return SqlParameter(params.size());
  }
  std::vector<PgParam> params;
};

// The bucket of a column's time. Where bigint cannot hold what lies between the grid's ends, numeric
// does, if slower.
SqlText BucketSql(SqlPiece column, const SqlText& start, const SqlText& width, bool fits_bigint) {
  if (fits_bigint) return SqlCat({"(", column, " - ", start, ") / ", width});
  return SqlCat({"div(", column, "::numeric - ", start, ", ", width, ")"});
}

// Whether the row's statistics say all that the grid asks for. CASE, since AND may be evaluated in
// any order, and only a time within the grid may be counted from its start.
SqlText WholeSql(const TimeGrid& grid, Statement& statement) {
  if (grid.width_us <= 0) return "false";
  const SqlText start = statement.Add(grid.start_us);
  const SqlText end = statement.Add(grid.end_us);
  const SqlText width = statement.Add(grid.width_us);
  std::int64_t span_us = 0;
  const bool fits = !__builtin_sub_overflow(grid.end_us, grid.start_us, &span_us);
  return SqlCat({"(case when nan_count = 0 and first_time_us >= ", start, " and last_time_us < ",
                 end, " then ", BucketSql("first_time_us", start, width, fits), " = ",
                 BucketSql("last_time_us", start, width, fits), " else false end)"});
}

SqlText ConditionSql(const RowFilter& filter, Statement& statement) {
  std::vector<SqlText> all = {SqlCat({"last_time_us >= ", statement.Add(filter.start_us)}),
                              SqlCat({"first_time_us < ", statement.Add(filter.end_us)})};
  if (filter.start_us > INT64_MIN + kRowSpanUs) {
    all.push_back(SqlCat({"first_time_us >= ", statement.Add(filter.start_us - kRowSpanUs)}));
  }
  if (filter.start_batch != 0 || filter.end_batch != 0) {
    all.push_back(SqlCat({"last_batch >= ", statement.Add(filter.start_batch)}));
    all.push_back(SqlCat({"first_batch < ", statement.Add(filter.end_batch)}));
  }
  if (!filter.writer_nos.empty()) {
    all.push_back(SqlCat({"writer_no = any(", statement.Add(PgArray(filter.writer_nos)), ")"}));
  }
  return SqlJoin(all, " and ");
}

SqlText ColumnsSql(SqlPiece recent, const SqlText& whole) {
  const auto unless_whole = [&](SqlPiece column) {
    return SqlCat({", case when ", whole, " then null else ", column, " end as ", column});
  };
  return SqlCat({recent, " as recent, ", sql::kRowHead, ", ", whole, " as whole",
                 unless_whole("bits"), unless_whole("bits2"), unless_whole("dictionary"),
                 unless_whole("raw"), unless_whole("presence")});
}

struct Arms {
  std::vector<SqlText> merged;  // one for each place
  SqlText recent;
};

// The two tables, with `series` as the condition on series_no.
Arms ArmsOf(const RowFilter& filter, const std::vector<LeafRange>& leaves, LeafPlaces by,
            LookBack look_back, const SqlText& series, Statement& statement) {
  const SqlText trial = statement.Add(Value(filter.trial_id));
  const SqlText whole = WholeSql(filter.grid, statement);
  const SqlText both =
      SqlCat({"trial_id = ", trial, " and ", series, " and ", ConditionSql(filter, statement)});
  Arms arms;
  if (!filter.only_recent) {
    for (const SqlText& place : PlacesOf("metrics", leaves, by, statement.params)) {
      arms.merged.push_back(
          SqlCat({"select ", ColumnsSql("false", whole), " from ", place, " and ", both}));
    }
  }
  if (look_back == LookBack::kTicks && !filter.only_recent) {
    const TickTimes times = {
        .start = statement.Add(filter.start_us),
        .end = statement.Add(filter.end_us),
        .earliest = statement.Add(TimeBefore(filter.start_us, kRowSpanUs)),
    };
    const std::vector<SqlText> ticks = PlacesOf("ticks", leaves, by, statement.params);
    STEPWELL_CHECK(ticks.size() == arms.merged.size());
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      arms.merged[i] = SqlCat({arms.merged[i], " and first_time_us >= ",
                               FirstTimeOf(ticks[i], SqlCat({"trial_id = ", trial}), times)});
    }
  }
  const SqlText fold_no = statement.Add(Value(filter.fold_no_max));
  arms.recent = SqlCat({"select ", ColumnsSql("true", whole), " from stepwell.recent where ", both,
                        " and fold_no <= ", fold_no});
  return arms;
}

constexpr char kInOrder[] = " order by series_no, first_time_us, writer_no, tick_no";

// Rows of some series, in order.
SqlText RowsSql(const RowFilter& filter, const std::vector<LeafRange>& leaves, LeafPlaces by,
                const SqlText& and_more, Statement& statement) {
  const SqlText series =
      SqlCat({"series_no = any(", statement.Add(PgArray(filter.series_nos)), ")", and_more});
  Arms arms = ArmsOf(filter, leaves, by, LookBack::kRows, series, statement);
  arms.merged.push_back(std::move(arms.recent));
  return SqlCat({SqlJoin(arms.merged, " union all "), kInOrder});
}

// The same, series by series, so that each is found by the index: where a leaf was never analyzed, or is
// planned for while it is small, PostgreSQL walks through all series of the trial for an array of them.
// What is asked of a series in one place stays a query of its own by its offset.
SqlText RowsBySeriesSql(const RowFilter& filter, const std::vector<LeafRange>& leaves,
                        LeafPlaces by, LookBack look_back, Statement& statement) {
  const SqlText wanted = statement.Add(PgArray(filter.series_nos));
  Arms arms = ArmsOf(filter, leaves, by, look_back, "series_no = wanted.no", statement);
  arms.merged.push_back(std::move(arms.recent));
  for (SqlText& arm : arms.merged) arm = SqlCat({"(", arm, " offset 0)"});
  return SqlCat({"select r.* from unnest(", wanted,
                 "::integer[]) as wanted (no) cross join lateral (",
                 SqlJoin(arms.merged, " union all "), ") r"});
}

// For each series the rows that end last, in each place. Rows of several writers and tick groups overlap: one that began
// long ago may end after all that began later. So the row that begins last only tells where to look: what ends as late as it
// does or later began a row's span before that at most. As a rule that is one row.
SqlText NewestSql(const RowFilter& filter, const std::vector<LeafRange>& leaves, LeafPlaces by,
                  Statement& statement) {
  const SqlText wanted = statement.Add(PgArray(filter.series_nos));
  const SqlText trial = statement.Add(Value(filter.trial_id));
  const SqlText fold_no = statement.Add(Value(filter.fold_no_max));
  const auto arm = [&](SqlPiece recent, const SqlText& place) {
    const SqlText rows =
        SqlCat({" from ", place, " and trial_id = ", trial, " and series_no = wanted.no"});
    return SqlCat({"(select m.* from (select last_time_us as ends", rows,
                   " order by first_time_us desc limit 1) n cross join lateral (select ",
                   ColumnsSql(recent, "false"), rows,
                   " and last_time_us >= n.ends and first_time_us >= n.ends - ",
                   SqlInteger(kRowSpanUs), " order by last_time_us desc limit ",
                   SqlInteger(kNewestRows), ") m)"});
  };
  std::vector<SqlText> arms;
  for (const SqlText& place : PlacesOf("metrics", leaves, by, statement.params)) {
    arms.push_back(arm("false", place));
  }
  arms.push_back(arm("true", SqlCat({"stepwell.recent where fold_no <= ", fold_no})));
  return SqlCat({"select r.* from unnest(", wanted,
                 "::integer[]) as wanted (no) cross join lateral (", SqlJoin(arms, " union all "),
                 ") r"});
}

TickKey TickKeyAt(const PgResult& page, int row) {
  return {.trial_id = TrialId{page.Int64(row, kTrialId)},
          .recent = page.Bool(row, kRecent),
          .keep_class = static_cast<std::int16_t>(page.Int32(row, kKeepClass)),
          .received_day = page.DateDays(row, kReceivedDay),
          .writer_no = page.Int32(row, kWriterNo),
          .tick_no = page.Int64(row, kTickNo)};
}

std::vector<std::uint8_t> PresenceAt(const PgResult& page, int row) {
  if (page.IsNull(row, kPresence)) return {};
  const PgBits bits = page.Bits(row, kPresence);
  return UnpackPresence({std::string(bits.bits), static_cast<std::size_t>(bits.bit_count)});
}

absl::Status CheckPresence(const StoredRow& row) {
  const std::size_t tick_count = row.ticks->times_us.size();
  std::size_t present = tick_count;
  if (!row.presence.empty()) {
    present = 0;
    for (const std::uint8_t bit : row.presence) present += bit;
  }
  if ((row.presence.empty() || row.presence.size() == tick_count) &&
      present == static_cast<std::size_t>(row.sample_count)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("row of series ", Value(row.series_no), ": ",
                                          row.sample_count, " samples on ", tick_count,
                                          " ticks do not match its presence bits"));
}

}  // namespace

PgRowCursor::PgRowCursor(PgReadLink& link, const RowFilter& filter, std::vector<LeafRange> leaves)
    : link_(link),
      filter_(filter),
      leaves_(std::move(leaves)),
      by_(link.LeavesBy(leaves_)),
      ticks_(link, filter.trial_id, leaves_, by_) {}

std::unique_ptr<PgRowCursor> PgRowCursor::Open(PgReadLink& link, const RowFilter& filter,
                                               const std::vector<UsageRecord>& usage,
                                               LookBack look_back) {
  std::unique_ptr<PgRowCursor> cursor(
      new PgRowCursor(link, filter, PickLeaves(usage, filter.start_us, filter.end_us)));
  const bool may_fit = filter.series_nos.size() < kPageRows;
  if (may_fit && (filter.only_recent || cursor->by_ == LeafPlaces::kNamed)) {
    cursor->AskFirstPage(look_back);
  } else {
    cursor->DeclareFrom(nullptr);
  }
  return cursor;
}

void PgRowCursor::AskFirstPage(LookBack look_back) {
  Statement statement;
  SqlText sql = SqlCat({RowsBySeriesSql(filter_, leaves_, by_, look_back, statement), kInOrder,
                        " limit ", SqlInteger(kPageRows + 1)});
  next_page_ =
      link_.Queue(ReadQuery::kRows, std::move(sql), std::move(statement.params), ReadPlan::kOnce);
}

void PgRowCursor::DeclareFrom(const PagePlace* from) {
  Statement statement;
  RowFilter filter = filter_;
  SqlText more;
  if (from != nullptr) {
    filter.series_nos = SeriesFrom(filter_.series_nos, *from);
    more = FromPlaceSql(filter.series_nos, statement.Add(from->series_no),
                        statement.Add(from->first_time_us));
  }
  SqlText sql = RowsSql(filter, leaves_, by_, more, statement);
  Declare(ReadQuery::kRows, std::move(sql), std::move(statement.params));
}

std::unique_ptr<PgRowCursor> PgRowCursor::OpenNewest(PgReadLink& link, const RowFilter& filter,
                                                     const std::vector<UsageRecord>& usage) {
  std::unique_ptr<PgRowCursor> cursor(
      new PgRowCursor(link, filter, PickLeaves(usage, filter.start_us, filter.end_us)));
  Statement statement;
  SqlText sql = NewestSql(filter, cursor->leaves_, cursor->by_, statement);
  cursor->Declare(ReadQuery::kNewestRows, std::move(sql), std::move(statement.params));
  return cursor;
}

void PgRowCursor::Declare(ReadQuery query, SqlText select, std::vector<PgParam> params) {
  link_.PutOff(query, SqlCat({"declare stepwell_rows no scroll cursor for ", select}),
               std::move(params));
  next_page_ = link_.Queue(ReadQuery::kControl, kFetch, {}, ReadPlan::kOnce);
  is_declared_ = true;
}

PgRowCursor::~PgRowCursor() {
  // So that the snapshot can open another one.
  link_.Forget(next_page_);
  if (is_declared_) link_.PutOff(ReadQuery::kControl, kClose, {}, ReadPlan::kOnce);
}

absl::StatusOr<std::optional<StoredRow>> PgRowCursor::Next() {
  if (page_row_ == page_rows_) {
    if (ended_) return std::nullopt;
    STEPWELL_RETURN_IF_ERROR(TakePage());
    if (page_rows_ == 0) return std::nullopt;
  }
  if (page_row_ == 0) STEPWELL_RETURN_IF_ERROR(PrepareTicks());
  STEPWELL_ASSIGN_OR_RETURN(StoredRow row, RowAt(page_row_++));
  return std::optional<StoredRow>(std::move(row));
}

absl::Status PgRowCursor::TakePage() {
  if (next_page_ == 0) next_page_ = link_.Queue(ReadQuery::kControl, kFetch, {}, ReadPlan::kOnce);
  STEPWELL_ASSIGN_OR_RETURN(page_, link_.Take(std::exchange(next_page_, 0)));
  page_row_ = 0;
  page_rows_ = page_.row_count();
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

int PgRowCursor::RowsBeforeLastPlace() const {
  int last = page_.row_count() - 1;
  const auto is_there = [&, end = last](int row) {
    return page_.Int32(row, kSeriesNo) == page_.Int32(end, kSeriesNo) &&
           page_.Int64(row, kFirstTime) == page_.Int64(end, kFirstTime);
  };
  while (last >= 0 && is_there(last)) --last;
  return last + 1;
}

absl::Status PgRowCursor::PrepareTicks() {
  std::vector<TickKey> keys;
  for (int row = 0; row < page_rows_; ++row) {
    if (!page_.Bool(row, kWhole)) keys.push_back(TickKeyAt(page_, row));
  }
  return ticks_.Prepare(keys);
}

absl::StatusOr<StoredRow> PgRowCursor::RowAt(int row) {
  StoredRow stored;
  stored.series_no = SeriesNo{page_.Int32(row, kSeriesNo)};
  stored.writer_no = WriterNo{page_.Int32(row, kWriterNo)};
  stored.first_time_us = page_.Int64(row, kFirstTime);
  stored.last_time_us = page_.Int64(row, kLastTime);
  stored.sample_count = page_.Int32(row, kSampleCount);
  stored.nan_count = page_.Int32(row, kNanCount);
  stored.min = page_.Float64(row, kMin);
  stored.max = page_.Float64(row, kMax);
  stored.sum = page_.Float64(row, kSum);
  stored.last = page_.Float64(row, kLast);
  if (page_.Bool(row, kWhole)) return stored;
  stored.values = VectorAt(page_, row, kValues);
  stored.presence = PresenceAt(page_, row);
  stored.ticks = ticks_.Find(TickKeyAt(page_, row));
  STEPWELL_RETURN_IF_ERROR(CheckPresence(stored));
  return stored;
}

}  // namespace stepwell
