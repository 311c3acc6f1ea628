// The newest samples of series by their rows, over metrics and recent in a real PostgreSQL: what LatestValues answers
// from after a start.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "storage/pg_reader.h"
#include "tests/support/postgres.h"
#include "tests/support/row_writer.h"

namespace stepwell {
namespace {

using testing::RowWriter;
using testing::TestPostgres;

constexpr TrialId kTrial{7};
constexpr std::int64_t kHourUs = 3'600'000'000;

TickTable Table(std::vector<std::int64_t> times_us, std::vector<std::int32_t> batches,
                std::vector<TickColumn> columns) {
  TickTable table;
  table.tick_group = 1;
  table.times_us = std::move(times_us);
  table.batches = std::move(batches);
  table.columns = std::move(columns);
  return table;
}

class LatestRowsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReadSnapshot> Snapshot() {
    auto snapshot = reader_.OpenSnapshot(SteadyTime::Now() + absl::Seconds(20));
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return *std::move(snapshot);
  }

  void AddSeries(std::int32_t series_no, const std::string& group, const std::string& name) {
    writer_.AddSeries(Value(kTrial),
                      {SeriesNo{series_no}, {{group, name, {}}, "1", SeriesKind::kGauge}});
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  RowWriter writer_{url_};
  PgReader reader_{{.url = url_}};
};

TEST_F(LatestRowsTest, LatestIsTheNewestSampleOfEachSeries) {
  writer_.AddTrial(7, 1);
  for (int series = 1; series <= 3; ++series) AddSeries(series, "g", absl::StrCat("s", series));
  for (int i = 0; i < 20; ++i) {
    const std::int64_t at = 1000 + i * 100;
    writer_.AddMerged({.received_day = 20'000 + i % 2},
                      Table({at, at + 50}, {i, i}, {{SeriesNo{1}, {1.0 * i, 1.5 * i}, {}}}));
  }
  writer_.AddRecent({.fold_no = 3}, Table({5000, 6000}, {50, 60}, {{SeriesNo{2}, {7}, {1, 0}}}));
  writer_.AddRecent({.fold_no = 4}, Table({9000}, {90}, {{SeriesNo{2}, {9}, {}}}));
  const auto latest = Snapshot()->ReadLatest(kTrial, {1, 2, 3}, FoldNo{3});
  ASSERT_TRUE(latest.ok()) << latest.status();
  ASSERT_EQ(latest->size(), 2u) << "series 3 has no sample";
  EXPECT_EQ(latest->at(0).time_us, 1000 + 19 * 100 + 50);
  EXPECT_EQ(latest->at(0).value, 1.5 * 19);
  EXPECT_EQ(latest->at(1).time_us, 5000) << "tick 6000 has no sample, fold 4 is beyond the pin";
  EXPECT_EQ(latest->at(1).batch, 50);
}

// As a scope in steps at 20 Hz, of which a row is 3 minutes, until 23:00, that goes on outside of them each 5 minutes,
// of which a row is a day.
TEST_F(LatestRowsTest, LatestIsInTheRowThatEndsLastWhicheverBeginsLast) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  AddSeries(2, "g", "s2");
  const std::int64_t day_us = 20'000 * 24 * kHourUs;
  const std::int64_t minute_us = kHourUs / 60;
  TickTable outside = Table({day_us + minute_us, day_us + 23 * kHourUs + 50 * minute_us}, {-1, -1},
                            {{SeriesNo{1}, {5, 50}, {}}, {SeriesNo{2}, {6, 60}, {}}});
  outside.tick_group = 2;
  writer_.AddMerged({}, outside);
  for (int i = 0; i < 40; ++i) {
    const std::int64_t at = day_us + 21 * kHourUs + i * 3 * minute_us;
    writer_.AddMerged(
        {}, Table({at, at + 3 * minute_us - 1}, {2 * i, 2 * i + 1}, {{SeriesNo{1}, {1, 2}, {}}}));
  }
  const auto latest = Snapshot()->ReadLatest(kTrial, {1, 2}, FoldNo{3});
  ASSERT_TRUE(latest.ok()) << latest.status();
  ASSERT_EQ(latest->size(), 2u);
  EXPECT_EQ(latest->at(0).time_us, day_us + 23 * kHourUs + 50 * minute_us);
  EXPECT_EQ(latest->at(0).value, 50);
  EXPECT_EQ(latest->at(0).batch, -1);
  EXPECT_EQ(latest->at(1).value, 60);
}

// Folds are of ten seconds: there the same lie side by side until they are merged, and once they are, in another place.
TEST_F(LatestRowsTest, LatestIsOfAnyPlaceAndDay) {
  writer_.AddTrial(7, 1);
  AddSeries(1, "g", "s");
  const std::int64_t day_us = 20'000 * 24 * kHourUs;
  writer_.AddMerged({.received_day = 20'000},
                    Table({day_us, day_us + 23 * kHourUs}, {-1, -1}, {{SeriesNo{1}, {1, 9}, {}}}));
  for (int i = 0; i < 20; ++i) {
    const std::int64_t at = day_us + i * kHourUs;
    writer_.AddMerged({.received_day = 20'001},
                      Table({at, at + kHourUs - 1}, {i, i}, {{SeriesNo{1}, {3, 4}, {}}}));
    writer_.AddRecent({.fold_no = 1}, Table({at + 1, at + 2}, {i, i}, {{SeriesNo{1}, {5, 6}, {}}}));
  }
  const auto latest = Snapshot()->ReadLatest(kTrial, {1}, FoldNo{3});
  ASSERT_TRUE(latest.ok()) << latest.status();
  ASSERT_EQ(latest->size(), 1u);
  EXPECT_EQ(latest->at(0).time_us, day_us + 23 * kHourUs);
  EXPECT_EQ(latest->at(0).value, 9);
}

}  // namespace
}  // namespace stepwell
