#include "server/bucket_resolution.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;

UsageRecord Line(const std::string& group, std::int64_t first_s, std::int64_t last_s,
                 bool has_rollups) {
  UsageRecord line;
  line.metric_group = group;
  line.first_time_us = first_s * kSecondUs;
  line.last_time_us = last_s * kSecondUs;
  line.has_rollups = has_rollups;
  return line;
}

TEST(BucketResolutionTest, RollupsServeWhereBucketsHoldTwoOfTheirSteps) {
  const struct {
    const char* name;
    std::int64_t start_s, end_s;
    std::int32_t buckets_max;
    v1::Resolution wanted, expected;
    std::int64_t width_s, bucket_count;
  } rows[] = {
      {"an hour in 500", 0, 3600, 500, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_RAW, 0, 500},
      {"just too fine", 0, 19, 1, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_RAW, 19, 1},
      {"two steps", 0, 20, 1, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_10_SECONDS, 20, 1},
      {"a day in 1000", 0, 86400, 1000, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_10_SECONDS, 90,
       960},
      {"a day in 720", 0, 86400, 720, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_60_SECONDS, 120,
       720},
      {"borders move outwards", 7, 86401, 720, v1::RESOLUTION_UNSPECIFIED,
       v1::RESOLUTION_10_SECONDS, 130, 665},
      {"samples of a day", 0, 86400, 720, v1::RESOLUTION_RAW, v1::RESOLUTION_RAW, 120, 720},
      {"10 s of an hour", 0, 3600, 500, v1::RESOLUTION_10_SECONDS, v1::RESOLUTION_10_SECONDS, 10,
       360},
      {"60 s of an hour", 0, 3600, 500, v1::RESOLUTION_60_SECONDS, v1::RESOLUTION_60_SECONDS, 60,
       60},
      {"nothing", 5, 5, 500, v1::RESOLUTION_10_SECONDS, v1::RESOLUTION_RAW, 0, 0},
      {"before 1970", -95, -15, 2, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_10_SECONDS, 50, 2},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const BucketPlan plan = PlanBuckets(BucketAxis::kTime, row.start_s * kSecondUs,
                                        row.end_s * kSecondUs, row.buckets_max);
    const BucketResolution chosen = ChooseResolution(plan, row.buckets_max, row.wanted, {}, {});
    EXPECT_EQ(chosen.wire(), row.expected);
    if (row.width_s > 0) {
      EXPECT_EQ(chosen.plan.width, row.width_s * kSecondUs);
    }
    EXPECT_EQ(chosen.plan.bucket_count, row.bucket_count);
    EXPECT_LE(chosen.plan.start, plan.start);
    EXPECT_GE(chosen.plan.end, plan.end);
  }
}

TEST(BucketResolutionTest, SamplesServeWhereSomeRowHasNoRollup) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kTime, 0, 86400 * kSecondUs, 720);
  const auto chosen = [&](const std::vector<UsageRecord>& usage) {
    return ChooseResolution(plan, 720, v1::RESOLUTION_UNSPECIFIED, usage, {{.metric_group = "gpu"}})
        .wire();
  };
  EXPECT_EQ(chosen({Line("gpu", 0, 10, true)}), v1::RESOLUTION_60_SECONDS);
  EXPECT_EQ(chosen({Line("gpu", 0, 10, true), Line("gpu", 20, 30, false)}), v1::RESOLUTION_RAW);
  EXPECT_EQ(chosen({Line("cpu", 20, 30, false)}), v1::RESOLUTION_60_SECONDS);
  EXPECT_EQ(chosen({Line("gpu", 90000, 90001, false)}), v1::RESOLUTION_60_SECONDS);
}

TEST(BucketResolutionTest, RollupsServeNarrowBucketsWhoseSamplesACapRemoved) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kTime, 0, 3600 * kSecondUs, 500);
  UsageRecord removed = Line("gpu", 0, 10, true);
  removed.removed_sample_count = 5;
  const auto chosen = [&](v1::Resolution wanted, const UsageRecord& line) {
    return ChooseResolution(plan, 500, wanted, {Line("gpu", 20, 30, true), line},
                            {{.metric_group = "gpu"}})
        .wire();
  };
  EXPECT_EQ(chosen(v1::RESOLUTION_UNSPECIFIED, removed), v1::RESOLUTION_10_SECONDS);
  EXPECT_EQ(chosen(v1::RESOLUTION_RAW, removed), v1::RESOLUTION_RAW) << "as it was asked";
  removed.metric_group = "cpu";
  EXPECT_EQ(chosen(v1::RESOLUTION_UNSPECIFIED, removed), v1::RESOLUTION_RAW);
}

TEST(BucketResolutionTest, RollupsServeWhereSamplesAreFarTooMany) {
  const struct {
    const char* name;
    std::int64_t sample_count, range_s;
    std::int32_t buckets_max;
    double share;
    v1::Resolution wanted, expected;
  } rows[] = {
      {"few", 790'000, 1600, 200, 1, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_RAW},
      {"many", 810'000, 1600, 200, 1, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_10_SECONDS},
      {"of which few are asked", 1'590'000, 1600, 200, 0.5, v1::RESOLUTION_UNSPECIFIED,
       v1::RESOLUTION_RAW},
      {"just wide enough", 810'000, 1600, 400, 1, v1::RESOLUTION_UNSPECIFIED,
       v1::RESOLUTION_10_SECONDS},
      {"too narrow for it", 810'000, 1600, 420, 1, v1::RESOLUTION_UNSPECIFIED, v1::RESOLUTION_RAW},
      {"half as many again", 1'200'000, 1600, 420, 1, v1::RESOLUTION_UNSPECIFIED,
       v1::RESOLUTION_10_SECONDS},
      {"just wide enough for any", 90'000'000, 1600, 800, 1, v1::RESOLUTION_UNSPECIFIED,
       v1::RESOLUTION_10_SECONDS},
      {"too narrow for any", 90'000'000, 1600, 820, 1, v1::RESOLUTION_UNSPECIFIED,
       v1::RESOLUTION_RAW},
      {"as it was asked", 90'000'000, 1600, 200, 1, v1::RESOLUTION_RAW, v1::RESOLUTION_RAW},
      {"wide anyway", 90'000'000, 1600, 20, 1, v1::RESOLUTION_UNSPECIFIED,
       v1::RESOLUTION_10_SECONDS},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    // Of twice the range, so that half of them lie in it.
    UsageRecord line = Line("gpu", 0, 2 * row.range_s, true);
    line.sample_count = row.sample_count;
    UsageRecord other = Line("cpu", 0, 2 * row.range_s, true);
    other.sample_count = 1'000'000'000;
    const BucketPlan plan =
        PlanBuckets(BucketAxis::kTime, 0, row.range_s * kSecondUs, row.buckets_max);
    const auto chosen = ChooseResolution(plan, row.buckets_max, row.wanted, {line, other},
                                         {{.metric_group = "gpu", .share = row.share}});
    EXPECT_EQ(chosen.wire(), row.expected);
  }
}

// A group's series are some of that group's samples, not of all that the trial has.
TEST(BucketResolutionTest, EachGroupsSamplesCountByTheShareThatIsAskedOfIt) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kTime, 0, 1600 * kSecondUs, 200);
  UsageRecord gpu = Line("gpu", 0, 1600, true);
  gpu.sample_count = 300'000;
  UsageRecord timing = Line("timing", 0, 1600, true);
  timing.sample_count = 1'000'000;
  const auto chosen = [&](double of_gpu, double of_timing) {
    return ChooseResolution(plan, 200, v1::RESOLUTION_UNSPECIFIED, {gpu, timing},
                            {{"gpu", of_gpu}, {"timing", of_timing}})
        .wire();
  };
  EXPECT_EQ(chosen(1, 0.11), v1::RESOLUTION_10_SECONDS);
  EXPECT_EQ(chosen(0.9, 0.11), v1::RESOLUTION_RAW);
  EXPECT_EQ(chosen(1, 0.09), v1::RESOLUTION_RAW);
}

TEST(BucketResolutionTest, ALineOfOneMomentCountsWhole) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kTime, 0, 1600 * kSecondUs, 200);
  UsageRecord line = Line("gpu", 7, 7, true);
  line.sample_count = 1'250'000;
  EXPECT_EQ(
      ChooseResolution(plan, 200, v1::RESOLUTION_UNSPECIFIED, {line}, {{.metric_group = "gpu"}})
          .wire(),
      v1::RESOLUTION_10_SECONDS);
}

TEST(BucketResolutionTest, TheEndsOfTimeAreLeftToSamples) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kTime, INT64_MIN, INT64_MAX, 1000);
  EXPECT_EQ(ChooseResolution(plan, 1000, v1::RESOLUTION_UNSPECIFIED, {}, {}).wire(),
            v1::RESOLUTION_RAW);
}

TEST(BucketResolutionTest, RefusesWhatIsNoResolution) {
  EXPECT_TRUE(CheckResolution(v1::RESOLUTION_60_SECONDS, BucketAxis::kTime).ok());
  EXPECT_TRUE(CheckResolution(v1::RESOLUTION_RAW, BucketAxis::kBatch).ok());
  EXPECT_EQ(CheckResolution(static_cast<v1::Resolution>(7), BucketAxis::kTime).message(),
            "resolution is 7; allowed: 0 ... 3");
  EXPECT_EQ(CheckResolution(v1::RESOLUTION_10_SECONDS, BucketAxis::kBatch).message(),
            "resolution is RESOLUTION_10_SECONDS with a batch_range: rollups are by time; allowed: "
            "UNSPECIFIED, RAW");
}

}  // namespace
}  // namespace stepwell
