#include "server/timing_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

class TimingSummaryTest : public ::testing::Test {
 protected:
  SeriesNo Declare(const std::string& name, Labels labels = {{"rank", "0"}},
                   SeriesKind kind = SeriesKind::kDuration) {
    Series series;
    series.series_no = SeriesNo{static_cast<std::int32_t>(series_.size()) + 1};
    series.definition = {{"timing", name, std::move(labels)}, "seconds", kind};
    series_.push_back(series);
    return series.series_no;
  }
  SeriesNo DeclareCount(const std::string& name) {
    return Declare(name + ".count", {{"rank", "0"}}, SeriesKind::kGauge);
  }
  void Add(SeriesNo series_no, std::int32_t batch, double value) {
    samples_.emplace(series_no, std::pair{batch, value});
  }
  TimingTable Table() {
    TimingSummary summary(series_);
    for (const auto& [series_no, sample] : samples_) {
      summary.Add(series_no, sample.first, sample.second);
    }
    for (const Series& series : series_) summary.Finish(series.series_no);
    return summary.Table();
  }
  static TimingLine Find(const TimingTable& table, const std::string& name, bool in_step = true) {
    for (const TimingLine& line : table.timings) {
      if (line.name == name && line.in_step == in_step) return line;
    }
    ADD_FAILURE() << "no timing " << name;
    return {};
  }

  std::vector<Series> series_;
  std::multimap<SeriesNo, std::pair<std::int32_t, double>> samples_;
};

TEST_F(TimingSummaryTest, SelfTimeIsWithoutTheScopesDirectlyInside) {
  const SeriesNo step = Declare("step");
  const SeriesNo train = Declare("train_batch");
  const SeriesNo forward = Declare("train_batch/forward");
  const SeriesNo attention = Declare("train_batch/forward/attention");
  const SeriesNo load = Declare("dataloader_next");
  for (int batch = 0; batch < 4; ++batch) {
    Add(step, batch, 1.0);
    Add(train, batch, 0.7);
    Add(forward, batch, 0.4);
    Add(attention, batch, 0.3);
    Add(load, batch, 0.2);
  }
  const TimingTable table = Table();
  EXPECT_NEAR(Find(table, "train_batch").self_seconds, 4 * 0.3, 1e-12);
  EXPECT_NEAR(Find(table, "train_batch/forward").self_seconds, 4 * 0.1, 1e-12);
  EXPECT_NEAR(Find(table, "train_batch/forward/attention").share, 0.3, 1e-12);
  EXPECT_NEAR(Find(table, "dataloader_next").share, 0.2, 1e-12);
  EXPECT_EQ(Find(table, "train_batch").steps, 4);
  ASSERT_EQ(table.ranks.size(), 1u);
  EXPECT_NEAR(table.ranks[0].unaccounted_share, 0.1, 1e-12);
  EXPECT_EQ(table.ranks[0].steps, 4);
}

// What agents round may make scopes longer than the step that they fill; what is longer by more than
// that is told.
TEST_F(TimingSummaryTest, WhatDurationsAreRoundedByIsNoTimeBelowZero) {
  const SeriesNo step = Declare("step");
  const SeriesNo forward = Declare("forward");
  const SeriesNo backward = Declare("backward");
  Add(step, 0, 0.0024999);
  Add(forward, 0, 0.0010000);
  Add(backward, 0, 0.0015000);
  EXPECT_EQ(Table().ranks[0].unaccounted_seconds, 0);
  EXPECT_EQ(Table().ranks[0].unaccounted_share, 0);
  Add(forward, 1, 0.001);
  EXPECT_NEAR(Table().ranks[0].unaccounted_seconds, -0.0010001, 1e-12);
}

TEST_F(TimingSummaryTest, CountComesFromTheCountSeries) {
  const SeriesNo step = Declare("step");
  const SeriesNo load = Declare("dataloader_next");
  const SeriesNo count = DeclareCount("dataloader_next");
  for (int batch = 0; batch < 10; ++batch) Add(step, batch, 1);
  for (int batch = 0; batch < 5; ++batch) Add(load, batch, 0.5);
  Add(count, 2, 3);  // three times in step 2, five in step 4
  Add(count, 4, 5);
  Add(count, 4, std::nan(""));
  const TimingLine line = Find(Table(), "dataloader_next");
  EXPECT_EQ(line.steps, 5);
  EXPECT_EQ(line.count, 3 + 3 + 5);
}

TEST_F(TimingSummaryTest, OutsideAStepIsApartAndWithoutShare) {
  const SeriesNo step = Declare("step");
  const SeriesNo save = Declare("save");
  Add(step, 0, 1);
  Add(save, 0, 0.25);
  Add(save, -1, 9);
  Add(save, -1, 11);
  const TimingTable table = Table();
  EXPECT_EQ(Find(table, "save").total_seconds, 0.25);
  const TimingLine outside = Find(table, "save", false);
  EXPECT_EQ(outside.count, 2);
  EXPECT_EQ(outside.steps, 0);
  EXPECT_EQ(outside.total_seconds, 20);
  EXPECT_EQ(outside.share, 0);
  EXPECT_EQ(outside.max_seconds, 11);
  EXPECT_EQ(table.ranks[0].unaccounted_share, 0.75);
}

TEST_F(TimingSummaryTest, BeyondAMillionValuesQuantilesAreWithinOnePercentAndSaySo) {
  const SeriesNo step = Declare("step");
  const SeriesNo load = Declare("load");
  constexpr std::size_t kCount = QuantileSketch::kExactMax + 1;
  TimingSummary summary(series_);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < kCount; ++i) {
    // Each of 1 ... kCount microseconds once: the factor shares no divisor with their number.
    seconds.push_back(1e-6 * static_cast<double>(1 + i * 48'271 % kCount));
    summary.Add(step, static_cast<std::int32_t>(i), seconds.back());
    if (i < 100) summary.Add(load, static_cast<std::int32_t>(i), seconds.back());
  }
  for (const Series& series : series_) summary.Finish(series.series_no);
  const TimingTable table = summary.Table();

  std::sort(seconds.begin(), seconds.end());
  ASSERT_EQ(std::adjacent_find(seconds.begin(), seconds.end()), seconds.end());
  const TimingLine line = Find(table, "step");
  EXPECT_EQ(line.count, static_cast<std::int64_t>(kCount));
  EXPECT_FALSE(line.quantiles_exact);
  const auto expect_near = [&](double told, std::size_t percent) {
    const double exact = seconds[(kCount * percent + 99) / 100 - 1];
    EXPECT_NEAR(told, exact, 0.01 * exact) << percent;
  };
  expect_near(line.p50_seconds, 50);
  expect_near(line.p95_seconds, 95);
  expect_near(line.p99_seconds, 99);
  EXPECT_EQ(line.max_seconds, seconds.back());
  EXPECT_TRUE(Find(table, "load").quantiles_exact) << "each scope for itself";
}

TEST_F(TimingSummaryTest, TheDeviceClockHasNoShare) {
  const SeriesNo step = Declare("step");
  const SeriesNo host = Declare("forward");
  const SeriesNo device = Declare("forward", {{"clock", "device"}, {"rank", "0"}});
  Add(step, 0, 1);
  Add(host, 0, 0.1);
  Add(device, 0, 0.8);
  const TimingTable table = Table();
  EXPECT_NEAR(table.ranks[0].unaccounted_share, 0.9, 1e-12);
  ASSERT_EQ(table.timings.size(), 3u);
}

TEST_F(TimingSummaryTest, RanksAreApart) {
  const SeriesNo zero = Declare("step", {{"rank", "0"}});
  const SeriesNo ten = Declare("step", {{"rank", "10"}});
  const SeriesNo two = Declare("step", {{"rank", "2"}});
  const SeriesNo none = Declare("housekeeping", {});
  Add(zero, 0, 1);
  Add(ten, 0, 3);
  Add(two, 0, 2);
  Add(none, -1, 1);
  const TimingTable table = Table();
  ASSERT_EQ(table.ranks.size(), 3u);
  EXPECT_EQ(table.ranks[1].rank, 2);
  EXPECT_EQ(table.ranks[2].step_seconds, 3);
  EXPECT_EQ(table.timings.front().rank, -1);
}

TEST_F(TimingSummaryTest, NothingRecordedIsAnEmptyTable) {
  Declare("step");
  const TimingTable table = Table();
  EXPECT_TRUE(table.timings.empty());
  EXPECT_TRUE(table.ranks.empty());
}

// A rank that two agents ran one after the other: the second one's series are numbered behind all of the first.
TEST_F(TimingSummaryTest, ReadScopeByScopeItHoldsTheValuesOfAFew) {
  constexpr int kScopes = 200;
  constexpr int kSteps = 10;
  for (const char* agent : {"a", "b"}) {
    for (int i = 0; i < kScopes; ++i) {
      Declare("scope" + std::to_string(i), {{"agent", agent}, {"rank", "0"}});
      if (i % 10 == 0) {
        Declare("scope" + std::to_string(i) + ".count", {{"agent", agent}, {"rank", "0"}},
                SeriesKind::kGauge);
      }
    }
  }
  const std::size_t of_first = series_.size() / 2;
  TimingSummary summary(series_);
  std::size_t most = 0;
  for (const std::vector<std::int32_t>& slice : summary.ReadOrder(256)) {
    for (const std::int32_t number : slice) {
      const bool is_first = static_cast<std::size_t>(number) <= of_first;
      for (int step = 0; is_first && step < kSteps; ++step) {
        summary.Add(SeriesNo{number}, step, 0.5);
      }
      summary.Finish(SeriesNo{number});
      most = std::max(most, summary.held_value_count());
    }
  }
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, TimingSummary::kOpenScopesMax * kSteps);
  EXPECT_EQ(summary.held_value_count(), 0u);
  const TimingTable table = summary.Table();
  EXPECT_EQ(table.timings.size(), static_cast<std::size_t>(kScopes));
  EXPECT_EQ(table.timings.front().p99_seconds, 0.5);
}

TEST_F(TimingSummaryTest, SlicesHaveEachSeriesOnceInOrderAndWholeScopes) {
  for (int agent = 0; agent < 40; ++agent) {
    // A scope that one agent had, one of each, and one that it does not need.
    const std::string name = std::to_string(agent);
    Declare("alone" + name, {{"agent", name}, {"rank", "0"}});
    Declare("step", {{"agent", name}, {"rank", "0"}});
    Declare("step.count", {{"agent", name}, {"rank", "0"}}, SeriesKind::kGauge);
    Declare("depth", {{"agent", name}, {"rank", "0"}}, SeriesKind::kGauge);
  }
  for (const std::size_t series_max : {std::size_t{1}, std::size_t{7}, std::size_t{256}}) {
    std::vector<std::int32_t> all;
    std::size_t slices_with_steps = 0;
    for (const std::vector<std::int32_t>& slice : TimingSummary(series_).ReadOrder(series_max)) {
      ASSERT_FALSE(slice.empty());
      ASSERT_LE(slice.size(), series_max);
      ASSERT_TRUE(std::is_sorted(slice.begin(), slice.end()));
      all.insert(all.end(), slice.begin(), slice.end());
      slices_with_steps += std::any_of(slice.begin(), slice.end(), [&](std::int32_t number) {
        return series_.at(static_cast<std::size_t>(number) - 1).definition.key.name == "step";
      });
    }
    EXPECT_EQ(all.size(), 3u * 40);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
    EXPECT_TRUE(series_max < 256 || slices_with_steps == 1) << slices_with_steps;
  }
}

TEST_F(TimingSummaryTest, SharesOfARankAddUpToOneOverAnyTree) {
  std::mt19937_64 random(TestSeed());
  std::uniform_real_distribution<double> seconds(0, 0.3);
  for (int round = 0; round < 100; ++round) {
    series_.clear();
    samples_.clear();
    const std::string names[] = {"a", "b", "c"};
    std::vector<SeriesNo> scopes;
    for (const std::string& one : names) {
      if (random() % 4 != 0) scopes.push_back(Declare(one));
      for (const std::string& two : names) {
        if (random() % 2 == 0) scopes.push_back(Declare(one + "/" + two));
        if (random() % 3 == 0) {
          scopes.push_back(Declare(one + "/" + two + "/x", {{"kind", "k"}, {"rank", "0"}}));
        }
      }
    }
    const SeriesNo step = Declare("step");
    for (int batch = 0; batch < 50; ++batch) {
      Add(step, batch, 1 + seconds(random));
      for (const SeriesNo scope : scopes) {
        if (random() % 5 != 0) Add(scope, batch, seconds(random));
      }
    }
    const TimingTable table = Table();
    ASSERT_EQ(table.ranks.size(), 1u);
    double sum = table.ranks[0].unaccounted_share;
    for (const TimingLine& line : table.timings) sum += line.share;
    ASSERT_NEAR(sum, 1, 1e-9) << "round " << round;
  }
}

}  // namespace
}  // namespace stepwell
