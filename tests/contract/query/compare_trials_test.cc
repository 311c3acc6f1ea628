// QueryReads::CompareTrials over real folds, merges and heads of several trials: it answers what a plain
// list of all their samples says; and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "storage/pg_connection.h"
#include "tests/contract/query/random_trial.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using testing::TestSeed;
using Response = v1::CompareTrialsResponse;

class CompareTrialsTest : public RandomTrialTest {
 protected:
  struct Fed {
    std::string name;
    RandomTrial state;
    // "timing/load rank=0" of each series.
    std::map<std::int32_t, std::string> key_of;
  };

  void BeginTrials(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      Turn(name);
      Fed fed{.name = name, .state = BeginRandom(), .key_of = {}};
      const RandomTrial& state = fed.state;
      fed.key_of = {{state.step, "timing/step 0"},
                    {state.scope, "timing/load 0"},
                    {state.loss, "training/loss 0"},
                    {state.cpu, "cpu/util "}};
      fed_.push_back(std::move(fed));
    }
  }

  // Without the rank where it is folded away.
  static std::string Folded(const std::string& key, bool by_rank) {
    return by_rank ? key : key.substr(0, key.find(' ')) + " ";
  }
  static std::string KeyOf(const v1::SeriesKey& key) {
    const auto rank = key.labels().find("rank");
    return absl::StrCat(key.metric_group(), "/", key.name(), " ",
                        rank == key.labels().end() ? "" : rank->second);
  }

  struct Cell {
    double min = INFINITY, max = -INFINITY, sum = 0, last = 0;
    std::uint64_t count = 0, nan_count = 0;

    void Add(double value) {
      if (std::isnan(value)) {
        ++nan_count;
        return;
      }
      min = std::min(min, value);
      max = std::max(max, value);
      sum += value;
      last = value;
      ++count;
    }
    double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
  };
  struct Expected {
    Cell whole;
    std::map<std::int64_t, Cell> cells;  // by bucket
  };

  // Of the trial at `at`, by key.
  std::map<std::string, Expected> Scan(std::size_t at, const v1::CompareTrialsRequest& request,
                                       const Response& response, bool by_rank) {
    Turn(fed_[at].name);
    std::map<std::string, Expected> expected;
    const std::vector<Point> points = InOrder();
    const bool by_time = request.axis() == v1::COMPARE_AXIS_TIME_SINCE_START;
    std::int64_t first_us = INT64_MAX;
    for (const Point& point : points) first_us = std::min(first_us, point.time_us);
    for (const Point& point : points) {
      if (!by_time && (point.batch < 0 || !Counts(point))) continue;
      const std::int64_t place = by_time ? point.time_us - first_us : point.batch;
      if (place < request.start() || (request.end() != 0 && place >= request.end())) continue;
      const std::string key = Folded(fed_[at].key_of.at(point.series_no), by_rank);
      if (!request.selectors().empty() && key.rfind("timing/", 0) != 0) continue;
      Expected& of_key = expected[key];
      of_key.whole.Add(point.value);
      of_key.cells[(place - response.start()) / response.width()].Add(point.value);
    }
    return expected;
  }

  static void CheckSide(const Response::Side& side, const Expected& expected, bool with_buckets) {
    const Cell& whole = expected.whole;
    ASSERT_EQ(side.count(), whole.count);
    ASSERT_EQ(side.nan_count(), whole.nan_count);
    if (whole.count > 0) {
      ASSERT_EQ(side.min(), whole.min);
      ASSERT_EQ(side.max(), whole.max);
      ASSERT_NEAR(side.mean(), whole.mean(), 1e-9);
      ASSERT_EQ(side.last(), whole.last);
    }
    if (!with_buckets) {
      ASSERT_EQ(side.indexes_size(), 0);
      ASSERT_EQ(side.nan_counts_size(), 0);
      return;
    }
    ASSERT_EQ(side.indexes_size(), static_cast<int>(expected.cells.size()));
    ASSERT_EQ(side.nan_counts_size(), whole.nan_count > 0 ? side.indexes_size() : 0);
    for (int i = 0; i < side.indexes_size(); ++i) {
      SCOPED_TRACE(absl::StrCat("bucket ", side.indexes(i)));
      const auto found = expected.cells.find(side.indexes(i));
      ASSERT_NE(found, expected.cells.end());
      ASSERT_EQ(side.counts(i), found->second.count);
      if (whole.nan_count > 0) {
        ASSERT_EQ(side.nan_counts(i), found->second.nan_count);
      }
      if (found->second.count == 0) {
        ASSERT_TRUE(std::isnan(side.mins(i)) && std::isnan(side.maxs(i)) &&
                    std::isnan(side.means(i)));
        continue;
      }
      ASSERT_EQ(side.mins(i), found->second.min);
      ASSERT_EQ(side.maxs(i), found->second.max);
      ASSERT_NEAR(side.means(i), found->second.mean(), 1e-9);
    }
  }

  v1::CompareTrialsRequest All() const {
    v1::CompareTrialsRequest request;
    for (const Fed& fed : fed_) *request.add_trials() = Ref(fed.name);
    return request;
  }

  void CheckComparison(std::mt19937_64& random) {
    v1::CompareTrialsRequest request = All();
    request.set_axis(static_cast<v1::CompareAxis>(random() % 3));
    const std::int64_t unit = request.axis() == v1::COMPARE_AXIS_TIME_SINCE_START ? 1'000'000 : 1;
    if (random() % 2 == 0) request.set_start(static_cast<std::int64_t>(random() % 50) * unit);
    if (random() % 2 == 0) {
      request.set_end(request.start() + static_cast<std::int64_t>(1 + random() % 200) * unit);
    }
    if (random() % 3 != 0) request.set_max_buckets(static_cast<std::int32_t>(random() % 40));
    if (random() % 4 == 0) {  // whole trials, of which rollups tell
      request = All();
      request.set_axis(v1::COMPARE_AXIS_TIME_SINCE_START);
    }
    if (random() % 3 == 0) request.add_selectors()->set_metric_group("timing");
    const bool by_rank = random() % 2 == 0;
    if (by_rank) request.add_group_by("rank");
    SCOPED_TRACE(request.ShortDebugString());
    const auto response = reads_.CompareTrials(request, Call());
    ASSERT_TRUE(response.ok()) << response.status();
    ASSERT_EQ(response->trials_size(), static_cast<int>(fed_.size()));
    std::map<std::string, std::map<std::size_t, Expected>> expected;
    for (std::size_t i = 0; i < fed_.size(); ++i) {
      for (auto& [key, of_key] : Scan(i, request, *response, by_rank)) expected[key][i] = of_key;
    }
    ASSERT_EQ(response->series_size(), static_cast<int>(expected.size()));
    int place = 0;
    for (auto& [key, of_trials] : expected) {
      SCOPED_TRACE(key);
      const auto& series = response->series(place++);
      ASSERT_EQ(KeyOf(series.key()), key) << "by group, name, labels";
      ASSERT_EQ(series.sides_size(), static_cast<int>(fed_.size()));
      ASSERT_EQ(series.unit(), "seconds");
      const Cell first = of_trials[0].whole;
      for (std::size_t i = 0; i < fed_.size(); ++i) {
        const Response::Side& side = series.sides(static_cast<int>(i));
        ASSERT_EQ(side.unit(), "seconds");
        CheckSide(side, of_trials[i], request.max_buckets() > 1);
        const Cell& whole = of_trials[i].whole;
        const bool both = first.count > 0 && whole.count > 0;
        ASSERT_NEAR(side.mean_difference(), both ? whole.mean() - first.mean() : 0, 1e-9);
        ASSERT_NEAR(side.mean_ratio(),
                    !both               ? 0
                    : i == 0            ? 1
                    : first.mean() == 0 ? 0
                                        : whole.mean() / first.mean(),
                    1e-9);
      }
    }
  }

  void CheckTrials() {
    const auto response = reads_.CompareTrials(All(), Call());
    ASSERT_TRUE(response.ok()) << response.status();
    for (std::size_t i = 0; i < fed_.size(); ++i) {
      Turn(fed_[i].name);
      const auto& compared = response->trials(static_cast<int>(i));
      const std::vector<Point> points = InOrder();
      EXPECT_EQ(compared.trial().external_id(), fed_[i].name);
      EXPECT_EQ(compared.trial().sample_count(), static_cast<std::int64_t>(points.size()));
      EXPECT_EQ(compared.completeness().samples_held(), static_cast<std::int64_t>(points.size()));
      std::int64_t first_us = points.empty() ? 0 : INT64_MAX;
      for (const Point& point : points) first_us = std::min(first_us, point.time_us);
      EXPECT_EQ(compared.start_time_us(), first_us);
    }
  }

  void ExpectRefused(const v1::CompareTrialsRequest& request, absl::StatusCode code,
                     const std::string& says) {
    const auto response = reads_.CompareTrials(request, Call());
    EXPECT_EQ(response.status().code(), code) << response.status();
    EXPECT_THAT(std::string(response.status().message()), HasSubstr(says));
  }

  std::vector<Fed> fed_;
};

TEST_F(CompareTrialsTest, AnswersWhatAPlainListSays) {
  std::mt19937_64 random(TestSeed());
  BeginTrials({"a", "b", "c"});
  fed_[1].state.time_us += 7'777'777;
  for (int round = 0; round < 60 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    Fed& fed = fed_[random() % (round < 20 ? 2 : 3)];
    Turn(fed.name);
    CommitRandom(random, fed.state);
    if (random() % 4 == 0) random() % 2 == 0 ? FoldBulk() : Fold();
    if (random() % 6 == 0) Merge(random() % 2 == 0 ? 1 : 100);
    CheckComparison(random);
    if (round % 10 == 0) CheckTrials();
  }
}

TEST_F(CompareTrialsTest, ATrialWithoutSamplesHasEmptySides) {
  std::mt19937_64 random(TestSeed());
  BeginTrials({"empty", "fed"});
  const auto nothing = reads_.CompareTrials(All(), Call());
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(nothing->series_size(), 0);
  EXPECT_EQ(nothing->trials_size(), 2);
  EXPECT_EQ(nothing->width(), 1);
  Turn("fed");
  for (int i = 0; i < 9; ++i) CommitRandom(random, fed_[1].state);
  CheckComparison(random);
  CheckTrials();
  Fold();
  Merge(1);
  CheckComparison(random);
  CheckTrials();
}

TEST_F(CompareTrialsTest, OneTrialsUnitTakesNoDifferenceFromTheOthers) {
  struct Row {
    const char* name;
    std::vector<std::string> units;  // of a series each
    double value;
  };
  const Row rows[] = {{"first", {"1/s", "1/s"}, 4},
                      {"other", {"1/min"}, 600},
                      {"same", {"1/s"}, 6},
                      {"mixed", {"1/s", "1/min"}, 8}};
  v1::CompareTrialsRequest request;
  for (const Row& one : rows) {
    Turn(one.name);
    Feed feed = OpenWriter("job");
    TickTable table;
    table.tick_group = 1;
    table.times_us = {kStartUs, kStartUs + 1};
    table.batches = {0, 1};
    for (const std::string& unit : one.units) {
      const std::string rank = absl::StrCat(table.columns.size());
      TickColumn column;
      column.series_no =
          SeriesNo{AddSeries("training", "rate", SeriesKind::kGauge, {{"rank", rank}}, unit)};
      column.values = {one.value, one.value};
      table.columns.push_back(std::move(column));
    }
    Commit(feed, {std::move(table)}, kStartUs);
    *request.add_trials() = Ref(one.name);
  }
  const auto response = reads_.CompareTrials(request, Call());
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->series_size(), 1);
  const auto& series = response->series(0);
  EXPECT_EQ(series.unit(), "");
  const struct {
    const char* unit;
    double mean, difference, ratio;
  } wanted[] = {{"1/s", 4, 0, 1}, {"1/min", 600, 0, 0}, {"1/s", 6, 2, 1.5}, {"", 8, 0, 0}};
  ASSERT_EQ(series.sides_size(), 4);
  for (int i = 0; i < series.sides_size(); ++i) {
    SCOPED_TRACE(rows[i].name);
    EXPECT_EQ(series.sides(i).unit(), wanted[i].unit);
    EXPECT_EQ(series.sides(i).mean(), wanted[i].mean);
    EXPECT_EQ(series.sides(i).mean_difference(), wanted[i].difference);
    EXPECT_EQ(series.sides(i).mean_ratio(), wanted[i].ratio);
  }
}

// As a cap that takes samples and leaves rollups.
TEST_F(CompareTrialsTest, WholeTrialsAreComparedWhereSamplesAreGoneAndRollupsLeft) {
  std::mt19937_64 random(TestSeed());
  BeginTrials({"a", "b"});
  for (Fed& fed : fed_) {
    Turn(fed.name);
    for (int i = 0; i < 9; ++i) CommitRandom(random, fed.state);
  }
  Fold();
  // A writer and a day of a trial each.
  for (int i = 0; i < 2 * 3 * 2; ++i) Merge(1);
  v1::CompareTrialsRequest request = All();
  request.set_axis(v1::COMPARE_AXIS_TIME_SINCE_START);
  const auto before = reads_.CompareTrials(request, Call());
  ASSERT_TRUE(before.ok()) << before.status();
  // By chance one of four has no sample.
  ASSERT_GE(before->series_size(), 2);
  const auto connection = PgConnection::Open({.url = url_});
  ASSERT_TRUE(connection.ok()) << connection.status();
  for (const char* sql : {"truncate stepwell.metrics, stepwell.ticks",
                          "update stepwell.usage_lines set row_count = 0, sample_count = 0"}) {
    const auto done = (*connection)->Exec(SqlOf(sql), {});
    ASSERT_TRUE(done.ok()) << done.status();
  }
  const auto after = reads_.CompareTrials(request, Call());
  ASSERT_TRUE(after.ok()) << after.status();
  ASSERT_EQ(after->series_size(), before->series_size());
  for (int i = 0; i < after->series_size(); ++i) {
    EXPECT_EQ(after->series(i).ShortDebugString(), before->series(i).ShortDebugString());
  }
  // Rollups do not tell which of their samples are of which batch (decision 0033).
  request.set_axis(v1::COMPARE_AXIS_BATCH);
  const auto by_batch = reads_.CompareTrials(request, Call());
  ASSERT_TRUE(by_batch.ok()) << by_batch.status();
  EXPECT_EQ(by_batch->series_size(), 0);
}

TEST_F(CompareTrialsTest, RefusesWithTheFieldsName) {
  BeginTrials({"a", "b"});
  v1::CompareTrialsRequest request = All();
  request.mutable_trials()->RemoveLast();
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, "trials has 1 entries");

  request = All();
  request.mutable_trials(1)->set_external_id("c");
  ExpectRefused(request, absl::StatusCode::kNotFound, "trials[1]: there is no trial 'c'");

  request = All();
  request.mutable_trials(1)->set_trial_id(-4);
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, "trials[1].trial_id is -4");

  request = All();
  Turn("a");
  auto& again = *request.add_trials();
  again.set_trial_id(Value(trial_id_));
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, "trials[2] is trial ");
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, "as trials[0] is; allowed: each");

  request = All();
  request.set_max_buckets(-1);
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, "max_buckets is -1");

  request = All();
  while (request.group_by_size() < 33) request.add_group_by("x");
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, "group_by has 33 entries");

  request = All();
  request.add_selectors()->set_name(std::string(2000, 'n'));
  ExpectRefused(request, absl::StatusCode::kInvalidArgument, "selectors[0].name has 2000 bytes");
}

TEST_F(CompareTrialsTest, TooManyBucketsInAllAreRefused) {
  BeginTrials({"a", "b"});
  for (const char* name : {"a", "b"}) {
    Turn(name);
    for (int i = 0; i < 60; ++i) AddSeries("many", absl::StrCat("series", i));
  }
  v1::CompareTrialsRequest request = All();
  request.set_end(10'000);
  request.set_max_buckets(10'000);
  ExpectRefused(
      request, absl::StatusCode::kResourceExhausted,
      "64 series times 2 trials times 10000 buckets is over 1000000: lower max_buckets to "
      "7812 or choose fewer series");
  request.add_selectors()->set_name("series7");
  EXPECT_TRUE(reads_.CompareTrials(request, Call()).ok());
}

}  // namespace
}  // namespace stepwell
