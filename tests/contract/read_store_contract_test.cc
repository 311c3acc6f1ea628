// What PgReader answers over rows of metrics and recent in a real PostgreSQL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "storage/pg_reader.h"
#include "storage/pg_reader_leaves.h"
#include "storage/vector_codec.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/postgres.h"
#include "tests/support/row_writer.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RowWriter;
using testing::TestPostgres;
using testing::TestSeed;

constexpr TrialId kTrial{7};
constexpr std::int64_t kHourUs = 3'600'000'000;

// series, time, batch, writer, bits of the value
using Read = std::tuple<std::int32_t, std::int64_t, std::int32_t, std::int32_t, std::uint64_t>;

class ReadStoreContract : public ::testing::Test {
 protected:
  static SteadyTime Deadline() { return SteadyTime::Now() + absl::Seconds(20); }

  std::unique_ptr<ReadSnapshot> Snapshot() {
    auto snapshot = reader_.OpenSnapshot(Deadline());
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return *std::move(snapshot);
  }

  void AddSeries(std::int32_t series_no, const std::string& group, const std::string& name,
                 Labels labels = {}) {
    writer_.AddSeries(Value(kTrial), {SeriesNo{series_no},
                                      {{group, name, std::move(labels)}, "1", SeriesKind::kGauge}});
  }

  static std::vector<Read> Unpack(const StoredRow& row) {
    const auto values = DecodeValues(row.values, static_cast<std::size_t>(row.sample_count));
    EXPECT_TRUE(values.ok()) << values.status();
    std::vector<Read> all;
    std::size_t value = 0;
    for (std::size_t tick = 0; tick < row.ticks->times_us.size(); ++tick) {
      if (!row.presence.empty() && row.presence[tick] == 0) continue;
      all.emplace_back(Value(row.series_no), row.ticks->times_us[tick], row.ticks->batches[tick],
                       Value(row.writer_no), std::bit_cast<std::uint64_t>((*values)[value++]));
    }
    return all;
  }

  std::vector<StoredRow> Rows(const RowFilter& filter) {
    const auto snapshot = Snapshot();
    auto cursor = snapshot->ReadRows(filter);
    EXPECT_TRUE(cursor.ok()) << cursor.status();
    std::vector<StoredRow> rows;
    for (;;) {
      auto row = (*cursor)->Next();
      EXPECT_TRUE(row.ok()) << row.status();
      if (!row.ok() || !row->has_value()) return rows;
      rows.push_back(**std::move(row));
    }
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  RowWriter writer_{url_};
  PgReader reader_{{.url = url_, .connection_count_max = 2}};
};

TickTable Table(std::vector<std::int64_t> times_us, std::vector<std::int32_t> batches,
                std::vector<TickColumn> columns) {
  TickTable table;
  table.tick_group = 1;
  table.times_us = std::move(times_us);
  table.batches = std::move(batches);
  table.columns = std::move(columns);
  return table;
}

TEST_F(ReadStoreContract, FindsTrialsByNumberAndByName) {
  writer_.AddTrial(7, 1);
  EXPECT_EQ(*reader_.FindTrial({.trial_id = 7}, kAllProjects, Deadline()), kTrial);
  EXPECT_EQ(*reader_.FindTrial({.external_id = "run-7"}, kAllProjects, Deadline()), kTrial);
  struct Row {
    TrialSelector selector;
    std::string says;
  };
  for (const Row& row : {Row{{.trial_id = 8}, "no trial with the id 8"},
                         Row{{.external_id = "run-8"}, "no trial 'run-8' in project 'default'"},
                         Row{{.project = "x", .external_id = "run-7"}, "'run-7' in project 'x'"}}) {
    const auto found = reader_.FindTrial(row.selector, kAllProjects, Deadline());
    EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(row.says));
  }
}

// From before 4713 BC to after 294276 AD: further apart than bigint reaches.
TEST_F(ReadStoreContract, AGridOverAllTimeLeavesBigintAlone) {
  constexpr std::int64_t kFirstUs = INT64_C(-210'866'803'200'000'000);
  constexpr std::int64_t kLastUs = INT64_C(9'214'646'400'000'000'000);
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "ancient");
  AddSeries(2, "g", "far");
  writer_.AddMerged(
      {.trial_id = 7},
      Table({kFirstUs}, {-1}, {{.series_no = SeriesNo{1}, .values = {5}, .presence = {}}}));
  writer_.AddRecent({.trial_id = 7},
                    Table({kLastUs - 1, kLastUs}, {-1, -1},
                          {{.series_no = SeriesNo{2}, .values = {5, 6}, .presence = {}}}));
  struct Row {
    std::int64_t start_us, end_us, width_us;
    std::vector<bool> whole;  // of series 1 and 2
  };
  for (const Row& row :
       {Row{INT64_MIN, INT64_MAX, INT64_MAX, {true, true}},
        Row{INT64_MIN, INT64_MAX, 1, {true, false}},
        Row{kFirstUs, kLastUs + 1, INT64_MAX, {true, true}},
        Row{kFirstUs, kLastUs + 1, kLastUs - kHourUs, {true, true}},
        Row{kFirstUs, INT64_MAX, 2, {true, false}}, Row{INT64_MIN, INT64_MIN + 1, 1, {}}}) {
    RowFilter filter{.trial_id = kTrial, .series_nos = {1, 2}, .fold_no_max = FoldNo{INT64_MAX}};
    filter.start_us = row.start_us;
    filter.end_us = row.end_us;
    filter.grid = {.start_us = row.start_us, .end_us = row.end_us, .width_us = row.width_us};
    std::vector<bool> whole;
    for (const StoredRow& read : Rows(filter)) whole.push_back(read.ticks == nullptr);
    EXPECT_EQ(whole, row.whole) << row.start_us << " " << row.end_us << " " << row.width_us;
  }
}

TEST_F(ReadStoreContract, SeriesAreChosenByAnyOfTheirParts) {
  writer_.AddTrial(7, 1);
  const Labels hostile = {{"a\"b\\", "\xE2\x82\xAC\n"}, {"z", ""}};
  AddSeries(1, "cpu", "util", {{"agent", "x"}});
  AddSeries(2, "cpu", "util", {{"agent", "x"}, {"core", "1"}});
  AddSeries(3, "gpu", "util", hostile);
  const auto snapshot = Snapshot();
  const auto numbers = [&](const SeriesSelection& selection, int after = 0, int limit = 10) {
    const auto series = snapshot->ListSeries(kTrial, selection, SeriesNo{after}, limit);
    EXPECT_TRUE(series.ok()) << series.status();
    std::vector<std::int32_t> found;
    for (const Series& one : *series) found.push_back(Value(one.series_no));
    return found;
  };
  EXPECT_THAT(numbers({}), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers({}, 1), ElementsAre(2, 3));
  EXPECT_THAT(numbers({}, 0, 1), ElementsAre(1));
  EXPECT_THAT(numbers({.metric_group = "cpu"}), ElementsAre(1, 2));
  EXPECT_THAT(numbers({.name = "util", .labels = {{"core", "1"}}}), ElementsAre(2));
  EXPECT_THAT(numbers({.labels = hostile}), ElementsAre(3));
  EXPECT_THAT(numbers({.series_nos = {3, 1, 99}}), ElementsAre(1, 3));
  EXPECT_THAT(numbers({.name = "nothing"}), ElementsAre());
  const auto third = snapshot->ListSeries(kTrial, {.series_nos = {3}}, SeriesNo{0}, 10);
  EXPECT_EQ(third->at(0).definition.key.labels, hostile);
}

TEST_F(ReadStoreContract, GapsSayWhetherSamplesAreMissing) {
  writer_.AddTrial(7, 1);
  const auto gap = [&](int cause, std::int64_t count, std::int64_t first, std::int64_t last) {
    writer_.Run(absl::StrCat(
        "insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, sample_count, "
        "first_time_us, last_time_us, first_sequence, last_sequence, reason) values (7, 1, ",
        cause, ", '', ", count, ", ", first, ", ", last, ", 0, 0, 'why')"));
  };
  EXPECT_FALSE(Snapshot()->ReadGaps(kTrial, {})->samples_missing);
  gap(10, 5, 100, 200);  // clock: kept, only flagged
  gap(4, 0, 100, 200);   // unsupported
  EXPECT_FALSE(Snapshot()->ReadGaps(kTrial, {})->samples_missing);
  EXPECT_EQ(Snapshot()->ReadGaps(kTrial, {})->missing_sample_count, 0);
  gap(1, 40, 300, 400);
  gap(9, 0, 0, 0);  // rejected, number and time unknown
  const GapList all = *Snapshot()->ReadGaps(kTrial, {});
  EXPECT_TRUE(all.samples_missing);
  EXPECT_EQ(all.missing_sample_count, 40);
  const TrialRecord trial = *Snapshot()->ReadTrial(kTrial);
  EXPECT_TRUE(trial.samples_missing);
  EXPECT_EQ(trial.missing_sample_count, 40);
  EXPECT_EQ(all.gaps.size(), 4u);
  EXPECT_FALSE(all.truncated);
  const GapList some = *Snapshot()->ReadGaps(kTrial, {.first_time_us = 250, .last_time_us = 350});
  EXPECT_EQ(some.gaps.size(), 2u) << "the one there, and the one of unknown time";
  const GapList cut = *Snapshot()->ReadGaps(kTrial, {.limit = 3});
  EXPECT_EQ(cut.gaps.size(), 3u);
  EXPECT_TRUE(cut.truncated);
}

TEST_F(ReadStoreContract, ReadsEverySampleOnceFromBothTables) {
  std::mt19937_64 random(TestSeed());
  writer_.AddTrial(7, 2);
  for (int series = 1; series <= 6; ++series) AddSeries(series, "g", absl::StrCat("s", series));
  std::vector<Read> expected;
  const std::int64_t base_us = 20'000 * 24 * kHourUs;
  // Of two days every leaf is named, of three none.
  const std::uint32_t day_count = 2 + static_cast<std::uint32_t>(random() % 2);
  // 60 tables: over 256 rows, so that pages and shared ticks are in play.
  for (int t = 0; t < 60; ++t) {
    const std::int32_t writer_no = 1 + static_cast<std::int32_t>(random() % 2);
    TickTable table;
    std::int64_t time_us = base_us + t * 3'000'000;
    const std::size_t tick_count = 1 + random() % 30;
    for (std::size_t i = 0; i < tick_count; ++i) {
      table.times_us.push_back(time_us += static_cast<std::int64_t>(random() % 100'000));
      table.batches.push_back(random() % 4 == 0 ? -1 : static_cast<std::int32_t>(i));
    }
    for (int series = 1; series <= 6; ++series) {
      TickColumn column;
      column.series_no = SeriesNo{series};
      const bool holes = random() % 2 == 0;
      for (std::size_t i = 0; i < tick_count; ++i) {
        const bool present = !holes || random() % 2 == 0;
        if (holes) column.presence.push_back(present);
        if (!present) continue;
        const double value = random() % 9 == 0 ? std::bit_cast<double>(random())
                                               : static_cast<double>(random() % 1000) / 10;
        column.values.push_back(value);
        expected.emplace_back(series, table.times_us[i], table.batches[i], writer_no,
                              std::bit_cast<std::uint64_t>(value));
      }
      if (!column.values.empty()) table.columns.push_back(std::move(column));
    }
    RowWriter::Place place{
        .writer_no = writer_no,
        .fold_no = t,
        .keep_class = static_cast<std::int16_t>(random() % 2),
        .received_day = 20'000 + static_cast<std::int32_t>(random() % day_count)};
    if (table.columns.empty()) continue;
    random() % 2 == 0 ? writer_.AddMerged(place, table) : writer_.AddRecent(place, table);
  }
  const std::vector<StoredRow> rows =
      Rows({.trial_id = kTrial, .series_nos = {1, 2, 3, 4, 5, 6}, .fold_no_max = FoldNo{1000}});
  std::vector<Read> got;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) {
      EXPECT_LE(std::pair(rows[i - 1].series_no, rows[i - 1].first_time_us),
                std::pair(rows[i].series_no, rows[i].first_time_us));
    }
    const std::vector<Read> samples = Unpack(rows[i]);
    got.insert(got.end(), samples.begin(), samples.end());
  }
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_TRUE(got == expected) << got.size() << " read, " << expected.size() << " written";
}

// Where a first page ends, a cursor goes on.
TEST_F(ReadStoreContract, NoRowIsLostOrTwiceWhereverTheFirstPageEnds) {
  writer_.AddTrial(7, 1);
  for (int series = 1; series <= 3; ++series) AddSeries(series, "g", absl::StrCat("s", series));
  const std::int64_t base_us = 20'000 * 24 * kHourUs;
  std::size_t row_count = 0;
  const auto add = [&](int series, std::int64_t at, int count) {
    for (int i = 0; i < count; ++i, ++row_count) {
      writer_.AddMerged({}, Table({at, at + 1}, {0, 1}, {{SeriesNo{series}, {1, 2}, {}}}));
    }
  };
  const auto read = [&] {
    std::set<std::tuple<int, std::int64_t, const void*>> rows;
    for (const StoredRow& row : Rows({.trial_id = kTrial, .series_nos = {1, 2, 3}})) {
      rows.emplace(Value(row.series_no), row.first_time_us, row.ticks.get());
    }
    return rows.size();
  };
  for (int i = 0; i < 255; ++i) add(1, base_us + i * 10, 1);
  EXPECT_EQ(read(), row_count) << "less than a page";
  add(2, base_us, 1);
  EXPECT_EQ(read(), row_count) << "a page";
  add(2, base_us, 3);
  EXPECT_EQ(read(), row_count) << "the last place has several rows";
  add(3, base_us, 1);
  EXPECT_EQ(read(), row_count) << "others follow";
  add(1, base_us, 300);
  EXPECT_EQ(read(), row_count) << "the first place fills the page";
}

// A sweep drops leaves that have long been empty, and folded rows of their days may come after it.
TEST_F(ReadStoreContract, WhereALeafIsGoneTheNextReadDoesWithoutIt) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  writer_.AddRecent({.fold_no = 4}, Table({100, 200}, {0, 1}, {{SeriesNo{1}, {1, 2}, {}}}));
  writer_.Run("drop table stepwell.metrics_k0_20241004, stepwell.ticks_k0_20241004");
  const RowFilter filter = {.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{9}};
  {
    const auto snapshot = Snapshot();
    const auto row = (*snapshot->ReadRows(filter))->Next();
    EXPECT_EQ(row.status().code(), absl::StatusCode::kUnavailable) << row.status();
  }
  EXPECT_EQ(Rows(filter).size(), 1u);
}

TEST_F(ReadStoreContract, LeavesOutRecentRowsOfFoldsBeyondThePin) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  const TickTable table = Table({100, 200}, {0, 1}, {{SeriesNo{1}, {1, 2}, {}}});
  writer_.AddRecent({.fold_no = 4}, table);
  writer_.AddRecent({.fold_no = 5}, table);
  const auto count = [&](int pin) {
    return Rows({.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{pin}}).size();
  };
  EXPECT_EQ(count(3), 0u);
  EXPECT_EQ(count(4), 1u);
  EXPECT_EQ(count(5), 2u);
}

TEST_F(ReadStoreContract, ASnapshotDoesNotSeeWhatCameLater) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  const TickTable table = Table({100, 200}, {0, 1}, {{SeriesNo{1}, {1, 2}, {}}});
  writer_.AddRecent({.fold_no = 1}, table);
  const auto snapshot = Snapshot();
  ASSERT_EQ(snapshot->ReadUsage(kTrial)->size(), 1u);
  // A merge and another fold, between the ledger and the rows.
  writer_.Run("delete from stepwell.recent; delete from stepwell.recent_ticks");
  writer_.AddMerged({}, table);
  writer_.AddRecent({.fold_no = 2}, table);
  auto cursor =
      snapshot->ReadRows({.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{9}});
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  ASSERT_TRUE((*cursor)->Next()->has_value());
  EXPECT_FALSE((*cursor)->Next()->has_value());
}

TEST_F(ReadStoreContract, RangesLeaveOutRowsThatCannotMatter) {
  writer_.AddTrial(7, 2);
  AddSeries(1, "g", "s");
  const std::int64_t day_us = 24 * kHourUs;
  const std::int64_t base_us = 20'000 * day_us;
  // A slow row of almost a day, and hourly ones of the next day.
  writer_.AddMerged({.received_day = 20'000},
                    Table({base_us, base_us + day_us - 1}, {0, 1}, {{SeriesNo{1}, {1, 2}, {}}}));
  for (int hour = 0; hour < 3; ++hour) {
    const std::int64_t at = base_us + day_us + hour * kHourUs;
    writer_.AddMerged(
        {.writer_no = 2, .received_day = 20'001},
        Table({at, at + kHourUs - 1}, {hour * 10, hour * 10 + 9}, {{SeriesNo{1}, {1, 2}, {}}}));
  }
  RowFilter filter{.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{9}};
  filter.start_us = base_us + day_us - 1;
  filter.end_us = base_us + day_us + 1;
  EXPECT_EQ(Rows(filter).size(), 2u) << "the end of the slow row, the start of an hourly one";
  filter.start_us = base_us + 2 * day_us;
  filter.end_us = INT64_MAX;
  EXPECT_EQ(Rows(filter).size(), 0u) << "after everything";
  filter = {.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{9}};
  filter.start_batch = 9;
  filter.end_batch = 20;
  EXPECT_EQ(Rows(filter).size(), 2u);
  filter = {.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{9}};
  filter.writer_nos = {1};
  EXPECT_EQ(Rows(filter).size(), 1u);
}

TEST_F(ReadStoreContract, RowsWithinOneBucketComeWithoutVectors) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto add = [&](std::int64_t first, std::int64_t last, double value) {
    writer_.AddMerged({}, Table({first, last}, {0, 1}, {{SeriesNo{1}, {3, value}, {}}}));
  };
  add(1000, 1099, 5);  // within [1000, 1100)
  add(1100, 1200, 5);  // crosses
  add(1300, 1310, nan);
  add(995, 1001, 5);   // begins before the grid
  add(1995, 2000, 5);  // ends beyond it
  RowFilter filter{.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{9}};
  filter.grid = {.start_us = 1000, .end_us = 2000, .width_us = 100};
  int without = 0;
  for (const StoredRow& row : Rows(filter)) {
    if (row.ticks != nullptr) continue;
    ++without;
    EXPECT_EQ(row.first_time_us, 1000);
    EXPECT_EQ(row.sum, 8);
    EXPECT_EQ(row.last, 5);
  }
  EXPECT_EQ(without, 1);
}

TEST_F(ReadStoreContract, BatchSpansAreThoseOfEachWriter) {
  writer_.AddTrial(7, 2);
  AddSeries(1, "g", "s");
  writer_.AddMerged({}, Table({1, 2, 3}, {-1, 5, 9}, {{SeriesNo{1}, {1, 2, 3}, {}}}));
  writer_.AddRecent({.fold_no = 1}, Table({4}, {12}, {{SeriesNo{1}, {1}, {}}}));
  writer_.AddRecent({.fold_no = 2}, Table({5}, {99}, {{SeriesNo{1}, {1}, {}}}));
  writer_.AddRecent({.writer_no = 2, .fold_no = 1}, Table({4}, {-1}, {{SeriesNo{1}, {1}, {}}}));
  const auto spans = Snapshot()->ReadBatchSpans(kTrial, FoldNo{1});
  ASSERT_TRUE(spans.ok()) << spans.status();
  ASSERT_EQ(spans->size(), 1u);
  EXPECT_EQ(spans->at(0).first_batch, 5);
  EXPECT_EQ(spans->at(0).last_batch, 12);
}

TEST_F(ReadStoreContract, ARowWithoutItsTicksIsDataLoss) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  writer_.AddMerged({}, Table({1, 2}, {0, 1}, {{SeriesNo{1}, {1, 2}, {}}}));
  writer_.Run("delete from stepwell.ticks");
  const auto snapshot = Snapshot();
  auto cursor =
      snapshot->ReadRows({.trial_id = kTrial, .series_nos = {1}, .fold_no_max = FoldNo{9}});
  const auto row = (*cursor)->Next();
  EXPECT_EQ(row.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(row.status().message()), HasSubstr("ticks 1 of writer 1 are missing"));
}

TEST_F(ReadStoreContract, ADeadlineInThePastIsAnsweredAtOnce) {
  EXPECT_EQ(reader_.OpenSnapshot(SteadyTime::Now() - absl::Seconds(1)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ReadStoreContract, PlansLookIntoTheLedgersLeavesAlone) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  for (int day = 0; day < 5; ++day) {
    const std::int64_t at = (20'000 + day) * 24 * kHourUs;
    writer_.AddMerged({.received_day = 20'000 + day}, Table({at}, {0}, {{SeriesNo{1}, {1}, {}}}));
  }
  const auto usage = Snapshot()->ReadUsage(kTrial);
  const std::int64_t start = 20'001 * 24 * kHourUs;
  const LeafCondition leaves = ConditionOf(PickLeaves(*usage, start, start + 24 * kHourUs), 1);
  const auto connection = testing::Connect(url_);
  const auto plan = connection->Exec(
      SqlCat({"explain select * from stepwell.metrics where ", leaves.sql}), leaves.params);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string text;
  for (int row = 0; row < plan->row_count(); ++row) text += plan->Text(row, 0);
  EXPECT_THAT(text, HasSubstr("metrics_k0_20241005"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("metrics_k0_20241006")));
}

}  // namespace
}  // namespace stepwell
