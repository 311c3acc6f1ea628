#include "server/rollup_fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Reading {
  std::int64_t time_us;
  double value;
};

// What a merge makes of readings that lie between ticks of others: each vector as full as it may be.
struct Rolled {
  RollupGrid grid;
  RollupColumn column;
};

struct Ways {
  bool with_presence = false;
  bool with_counts = false;
  bool with_nan_counts = false;
  bool with_lags = false;
};

// `steps`: all of the grid, some of which have no reading.
Rolled RollUp(const std::vector<Reading>& readings, const std::vector<std::int64_t>& steps,
              std::int32_t step_seconds, const Ways& ways) {
  std::map<std::int64_t, std::vector<Reading>> of_step;
  const std::int64_t step_us = step_seconds * kSecondUs;
  for (const Reading& reading : readings) {
    const std::int64_t step = reading.time_us / step_us - (reading.time_us % step_us < 0 ? 1 : 0);
    of_step[step].push_back(reading);
  }
  Rolled rolled;
  rolled.grid.step_seconds = step_seconds;
  RollupColumn& column = rolled.column;
  for (const std::int64_t step : steps) {
    const auto found = of_step.find(step);
    if (ways.with_presence) column.presence.push_back(found == of_step.end() ? 0 : 1);
    rolled.grid.buckets.push_back(step);
    if (found == of_step.end()) {
      rolled.grid.tick_counts.push_back(3);
      rolled.grid.last_times_us.push_back(step * step_us + 5);
      continue;
    }
    const std::vector<Reading>& own = found->second;
    // The newest tick of all lies behind the newest of this series, where that may be told.
    const std::int64_t lag_us = ways.with_lags ? 7 : 0;
    Bucket bucket;
    for (const Reading& reading : own) {
      if (std::isnan(reading.value)) {
        ++bucket.nan_count;
        continue;
      }
      ++bucket.count;
      bucket.min = std::min(bucket.min, reading.value);
      bucket.max = std::max(bucket.max, reading.value);
      bucket.sum += reading.value;
      bucket.last = reading.value;
      bucket.last_time_us = reading.time_us;
    }
    if (bucket.count == 0)
      bucket.min = bucket.max = bucket.last = 0, bucket.last_time_us = step * step_us;
    rolled.grid.tick_counts.push_back(ways.with_counts ? 999 : std::ssize(own));
    rolled.grid.last_times_us.push_back(bucket.last_time_us + lag_us);
    if (ways.with_counts) column.counts.push_back(std::ssize(own));
    if (ways.with_nan_counts)
      column.nan_counts.push_back(static_cast<std::int64_t>(bucket.nan_count));
    if (ways.with_lags) column.last_lags_us.push_back(lag_us);
    column.mins.push_back(bucket.min);
    column.maxs.push_back(bucket.max);
    column.sums.push_back(bucket.sum);
    column.lasts.push_back(bucket.last);
  }
  return rolled;
}

void ExpectSame(const std::vector<Bucket>& rolled, const std::vector<Bucket>& sampled) {
  if (sampled.empty()) {
    for (const Bucket& bucket : rolled) ASSERT_EQ(bucket.count + bucket.nan_count, 0U);
    return;
  }
  ASSERT_EQ(rolled.size(), sampled.size());
  for (std::size_t i = 0; i < rolled.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(rolled[i].count, sampled[i].count);
    ASSERT_EQ(rolled[i].nan_count, sampled[i].nan_count);
    ASSERT_EQ(rolled[i].min, sampled[i].min);
    ASSERT_EQ(rolled[i].max, sampled[i].max);
    ASSERT_EQ(rolled[i].last, sampled[i].last);
    // Integers of which no sum rounds.
    ASSERT_EQ(rolled[i].sum, sampled[i].sum);
  }
}

// Whatever a grid holds, in any number of parts: buckets are those of the samples themselves.
TEST(RollupFoldTest, FoldsToTheBucketsOfItsSamples) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 500; ++round) {
    const std::int32_t step_seconds = random() % 2 == 0 ? 10 : 60;
    const std::int64_t step_us = step_seconds * kSecondUs;
    const std::int64_t origin = static_cast<std::int64_t>(random() % 400) - 200;
    const Ways ways = {.with_presence = random() % 2 == 0,
                       .with_counts = random() % 2 == 0,
                       .with_nan_counts = random() % 2 == 0,
                       .with_lags = random() % 2 == 0};
    const std::size_t steps_per_bucket = 1 + random() % 12;
    BucketPlan plan;
    plan.start = (origin + static_cast<std::int64_t>(random() % 60)) * step_us;
    plan.width = static_cast<std::int64_t>(steps_per_bucket) * step_us;
    plan.bucket_count = static_cast<std::int64_t>(1 + random() % 30);
    plan.end = plan.start + plan.bucket_count * plan.width;
    // A last bucket that reaches over the range's end.
    if (random() % 2 == 0)
      plan.end -= static_cast<std::int64_t>(random() % steps_per_bucket) * step_us;

    BucketFold rolled(plan);
    BucketFold sampled(plan);
    std::int64_t step = origin;
    for (int part = 0; part < 3; ++part) {
      // Parts of several writers overlap.
      if (random() % 3 == 0) step = origin;
      std::vector<Reading> readings;
      std::vector<std::int64_t> steps;
      const std::size_t step_count = random() % 80;
      for (std::size_t i = 0; i < step_count; ++i) {
        step += random() % 10 == 0 ? static_cast<std::int64_t>(random() % 40) + 1 : 1;
        steps.push_back(step);
        if (ways.with_presence && random() % 4 == 0) continue;
        std::int64_t time_us = step * step_us;
        const std::size_t reading_count = 1 + random() % 4;
        for (std::size_t k = 0; k < reading_count; ++k) {
          time_us += 1 + static_cast<std::int64_t>(random() % kSecondUs);
          const bool is_nan = ways.with_nan_counts && random() % 3 == 0;
          readings.push_back(
              {time_us, is_nan ? kNan : std::floor(static_cast<double>(random() % 2001) - 1000)});
        }
      }
      const Rolled made = RollUp(readings, steps, step_seconds, ways);
      AddRollup(made.grid, made.column, rolled);
      for (const Reading& reading : readings) sampled.AddSample(reading.time_us, -1, reading.value);
    }
    SCOPED_TRACE(round);
    ExpectSame(rolled.buckets(), sampled.buckets());
    if (HasFatalFailure()) return;
  }
}

TEST(RollupFoldTest, WhatIsOfTheSameTimeGoesOnWhereItsNewestIs) {
  const BucketPlan plan = {
      .start = 0, .end = 60 * kSecondUs, .width = 60 * kSecondUs, .bucket_count = 1};
  BucketFold fold(plan);
  fold.AddSample(59 * kSecondUs, -1, 4.0);
  const std::vector<Reading> older = {{3 * kSecondUs, 8.0}};
  const Rolled made = RollUp(older, {0}, 10, {});
  AddRollup(made.grid, made.column, fold);
  EXPECT_EQ(fold.buckets().front().last, 4.0);
  EXPECT_EQ(fold.buckets().front().max, 8.0);
  EXPECT_EQ(fold.buckets().front().count, 2U);
}

TEST(RollupFoldTest, MemoryOfAnEarlierFoldIsEmpty) {
  const BucketPlan plan = {
      .start = 0, .end = 30 * kSecondUs, .width = 10 * kSecondUs, .bucket_count = 3};
  BucketFold first(plan);
  first.AddSample(1, -1, 1.0);
  first.AddSample(25 * kSecondUs, -1, 2.0);
  BucketFold second(plan, std::move(first).TakeBuckets());
  EXPECT_TRUE(second.buckets().empty());
  second.AddSample(11 * kSecondUs, -1, 3.0);
  ASSERT_EQ(second.buckets().size(), 3U);
  EXPECT_EQ(second.buckets()[0].count, 0U);
  EXPECT_EQ(second.buckets()[1].count, 1U);
  EXPECT_EQ(second.buckets()[2].count, 0U);
}

}  // namespace
}  // namespace stepwell
