#include "server/bucket_fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Reading {
  std::int64_t time_us;
  std::int32_t batch;
  double value;
};

// The plain way: all samples of a bucket beside each other.
std::map<std::int64_t, Bucket> Scan(const BucketPlan& plan, const std::vector<Reading>& readings) {
  std::map<std::int64_t, std::vector<Reading>> cells;
  for (const Reading& reading : readings) {
    const std::int64_t place = plan.axis == BucketAxis::kTime ? reading.time_us : reading.batch;
    if (plan.axis == BucketAxis::kBatch && reading.batch < 0) continue;
    if (place < plan.start || place >= plan.end) continue;
    cells[(place - plan.start) / plan.width].push_back(reading);
  }
  std::map<std::int64_t, Bucket> buckets;
  for (auto& [index, cell] : cells) {
    Bucket& bucket = buckets[index];
    std::stable_sort(cell.begin(), cell.end(),
                     [](const Reading& a, const Reading& b) { return a.time_us < b.time_us; });
    for (const Reading& reading : cell) {
      if (std::isnan(reading.value)) {
        ++bucket.nan_count;
        continue;
      }
      bucket.min = std::min(bucket.min, reading.value);
      bucket.max = std::max(bucket.max, reading.value);
      bucket.sum += reading.value;
      bucket.last = reading.value;
      ++bucket.count;
    }
  }
  return buckets;
}

void ExpectSame(const std::vector<Bucket>& folded, const std::map<std::int64_t, Bucket>& scanned) {
  for (std::size_t i = 0; i < folded.size(); ++i) {
    SCOPED_TRACE(i);
    const auto found = scanned.find(static_cast<std::int64_t>(i));
    const Bucket expected = found == scanned.end() ? Bucket() : found->second;
    ASSERT_EQ(folded[i].count, expected.count);
    ASSERT_EQ(folded[i].nan_count, expected.nan_count);
    ASSERT_EQ(folded[i].min, expected.min);
    ASSERT_EQ(folded[i].max, expected.max);
    ASSERT_EQ(folded[i].last, expected.last);
    if (expected.count > 0) {
      ASSERT_NEAR(folded[i].mean(), expected.mean(), 1e-9);
    }
  }
}

// Adds readings as rows where a row may stand for them, else one by one; rows of random length.
BucketFold FoldByRows(const BucketPlan& plan, const std::vector<Reading>& readings,
                      std::mt19937_64& random) {
  BucketFold fold(plan);
  for (std::size_t at = 0; at < readings.size();) {
    const std::size_t end = std::min(readings.size(), at + 1 + random() % 40);
    const auto nan_count =
        std::count_if(readings.begin() + static_cast<std::ptrdiff_t>(at),
                      readings.begin() + static_cast<std::ptrdiff_t>(end),
                      [](const Reading& reading) { return std::isnan(reading.value); });
    RowStatistics row{.first_time_us = readings[at].time_us,
                      .last_time_us = readings[end - 1].time_us,
                      .min = kInf,
                      .max = -kInf};
    for (std::size_t i = at; i < end; ++i) {
      row.min = std::min(row.min, readings[i].value);
      row.max = std::max(row.max, readings[i].value);
      row.sum += readings[i].value;
      row.last = readings[i].value;
      ++row.count;
    }
    if (BucketFold::CanAddRow(plan, row.first_time_us, row.last_time_us, nan_count)) {
      fold.AddRow(row);
    } else {
      for (std::size_t i = at; i < end; ++i) {
        fold.AddSample(readings[i].time_us, readings[i].batch, readings[i].value);
      }
    }
    at = end;
  }
  return fold;
}

TEST(BucketFoldTest, FoldsAsAPlainScanDoes) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<Reading> readings;
    std::int64_t time_us = static_cast<std::int64_t>(random() % 1000) - 500;
    std::int32_t batch = -1;
    const std::size_t count = random() % 600;
    while (readings.size() < count) {
      time_us += 1 + static_cast<std::int64_t>(random() % 50);
      if (random() % 3 == 0) ++batch;
      const double value =
          random() % 20 == 0 ? kNan : static_cast<double>(random() % 1000) / 8 - 40;
      readings.push_back({time_us, random() % 10 == 0 ? -1 : batch, value});
    }
    const bool by_time = random() % 2 == 0;
    const std::int64_t start = by_time ? static_cast<std::int64_t>(random() % 2000) - 800 : 0;
    const std::int64_t end = start + static_cast<std::int64_t>(random() % 8000);
    const BucketPlan plan = PlanBuckets(by_time ? BucketAxis::kTime : BucketAxis::kBatch, start,
                                        end, 1 + static_cast<std::int32_t>(random() % 60));
    SCOPED_TRACE(round);
    ExpectSame(FoldByRows(plan, readings, random).buckets(), Scan(plan, readings));
  }
}

TEST(BucketFoldTest, TicksOfARowAreFoldedAsTheirSamplesAre) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    const std::int64_t start =
        round % 7 == 0 ? INT64_MIN : static_cast<std::int64_t>(random() % 50);
    const std::int64_t end =
        round % 5 == 0 ? INT64_MAX : 60 + static_cast<std::int64_t>(random() % 60);
    const BucketPlan plan =
        PlanBuckets(BucketAxis::kTime, start, end, 1 + static_cast<std::int32_t>(random() % 30));
    BucketFold by_rows(plan);
    BucketFold by_samples(plan);
    for (std::size_t row = 0; row < 3; ++row) {
      std::vector<std::int64_t> times_us(random() % 50);
      std::vector<std::uint8_t> presence;
      std::vector<double> values;
      std::int64_t time_us = static_cast<std::int64_t>(random() % 20);
      for (std::int64_t& each : times_us) {
        each = time_us += static_cast<std::int64_t>(random() % 5);
        if (random() % 20 == 0) each -= 30;  // out of order
      }
      const bool all = random() % 2 == 0;
      for (const std::int64_t each : times_us) {
        if (!all) presence.push_back(random() % 3 == 0 ? 0 : 1);
        if (!all && presence.back() == 0) continue;
        values.push_back(random() % 9 == 0 ? kNan : static_cast<double>(random() % 100) / 7);
        by_samples.AddSample(each, -1, values.back());
      }
      by_rows.AddTicks(times_us, presence, values);
    }
    ASSERT_EQ(by_rows.buckets().size(), by_samples.buckets().size());
    for (std::size_t i = 0; i < by_rows.buckets().size(); ++i) {
      const Bucket& one = by_rows.buckets()[i];
      const Bucket& other = by_samples.buckets()[i];
      ASSERT_EQ(one.count, other.count) << i;
      ASSERT_EQ(one.nan_count, other.nan_count) << i;
      ASSERT_EQ(one.min, other.min) << i;
      ASSERT_EQ(one.max, other.max) << i;
      ASSERT_EQ(one.sum, other.sum) << i;
      ASSERT_EQ(one.last, other.last) << i;
    }
  }
}

TEST(BucketFoldTest, LosesNoPeak) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kTime, 0, 1000, 2);
  BucketFold fold(plan);
  for (int i = 0; i < 1000; ++i) fold.AddSample(i, -1, i == 333 ? 1e9 : 1);
  EXPECT_EQ(fold.buckets()[0].max, 1e9);
  EXPECT_EQ(fold.buckets()[1].max, 1);
}

TEST(BucketFoldTest, CountsNanApartAndKeepsInfinities) {
  BucketFold fold(PlanBuckets(BucketAxis::kTime, 0, 10, 1));
  fold.AddSample(1, -1, kInf);
  fold.AddSample(2, -1, -0.0);
  fold.AddSample(3, -1, kNan);
  const Bucket& bucket = fold.buckets()[0];
  EXPECT_EQ(bucket.nan_count, 1u);
  EXPECT_EQ(bucket.count, 2u);
  EXPECT_EQ(bucket.max, kInf);
  EXPECT_TRUE(std::signbit(bucket.last));
  EXPECT_EQ(bucket.mean(), kInf);
}

TEST(BucketFoldTest, LastIsTheNewestWhateverTheOrder) {
  BucketFold fold(PlanBuckets(BucketAxis::kTime, 0, 100, 1));
  fold.AddSample(50, -1, 5);
  fold.AddRow({.first_time_us = 10, .last_time_us = 60, .last = 6, .count = 3});
  fold.AddSample(20, -1, 2);
  EXPECT_EQ(fold.buckets()[0].last, 6);
}

TEST(BucketFoldTest, ARowStandsForItsSamplesOnlyWithinOneBucketAndWithoutNan) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kTime, 100, 200, 10);
  EXPECT_TRUE(BucketFold::CanAddRow(plan, 110, 119, 0));
  EXPECT_FALSE(BucketFold::CanAddRow(plan, 110, 120, 0));
  EXPECT_FALSE(BucketFold::CanAddRow(plan, 110, 119, 1));
  EXPECT_FALSE(BucketFold::CanAddRow(plan, 99, 105, 0));
  EXPECT_FALSE(BucketFold::CanAddRow(plan, 195, 200, 0));
  EXPECT_FALSE(BucketFold::CanAddRow(PlanBuckets(BucketAxis::kBatch, 100, 200, 10), 110, 119, 0));
}

}  // namespace
}  // namespace stepwell
