#include "server/compare_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::HasSubstr;

v1::CompareTrialsRequest Two(v1::CompareAxis axis = v1::COMPARE_AXIS_UNSPECIFIED) {
  v1::CompareTrialsRequest request;
  request.add_trials()->set_trial_id(1);
  request.add_trials()->set_trial_id(2);
  request.set_axis(axis);
  return request;
}

TEST(ComparePlanTest, RefusalsNameTheField) {
  struct Row {
    const char* says;
    std::function<void(v1::CompareTrialsRequest&)> spoil;
  };
  const Row rows[] = {
      {"trials has 1 entries; allowed: 2 ... 16",
       [](auto& request) { request.mutable_trials()->RemoveLast(); }},
      {"trials has 17 entries; allowed: 2 ... 16",
       [](auto& request) {
         while (request.trials_size() < 17) request.add_trials();
       }},
      {"selectors[1].series_nos is given",
       [](auto& request) {
         request.add_selectors();
         request.add_selectors()->add_series_nos(3);
       }},
      {"axis is 3; allowed: 0, 1, 2",
       [](auto& request) { request.set_axis(static_cast<v1::CompareAxis>(3)); }},
      {"start is -1; allowed: 0 ... 2147483647", [](auto& request) { request.set_start(-1); }},
      {"end is 2147483648; allowed: 0 ... 2147483647",
       [](auto& request) { request.set_end(INT64_C(1) << 31); }},
      {"end is 5; allowed: 0, or start (6) and above",
       [](auto& request) {
         request.set_start(6);
         request.set_end(5);
       }},
      {"start is -1; allowed: 0 ... 9223372036854775807",
       [](auto& request) {
         request.set_axis(v1::COMPARE_AXIS_TIME_SINCE_START);
         request.set_start(-1);
       }},
  };
  EXPECT_TRUE(CheckCompareRequest(Two()).ok());
  for (const Row& row : rows) {
    v1::CompareTrialsRequest request = Two();
    row.spoil(request);
    const absl::Status status = CheckCompareRequest(request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.says));
  }
}

TEST(ComparePlanTest, ReachesToTheEndOfTheLongest) {
  const std::vector<TrialReach> trials = {
      {.first_time_us = 1'000, .last_time_us = 1'099, .end_batch = 40},
      {},
      {.first_time_us = 900'000, .last_time_us = 900'999, .end_batch = 30}};
  struct Row {
    const char* name;
    v1::CompareAxis axis;
    std::int64_t start, end;
    std::int32_t buckets_max;
    std::int64_t plan_start, plan_end, width, count;
  };
  const auto time = v1::COMPARE_AXIS_TIME_SINCE_START;
  const auto batch = v1::COMPARE_AXIS_BATCH;
  const Row rows[] = {
      {"batches", batch, 0, 0, 1, 0, 40, 40, 1},
      {"unspecified is by batch", v1::COMPARE_AXIS_UNSPECIFIED, 0, 0, 4, 0, 40, 10, 4},
      {"from a batch on", batch, 20, 0, 10, 20, 40, 2, 10},
      {"some batches", batch, 20, 25, 10, 20, 25, 1, 5},
      {"behind all batches", batch, 50, 0, 10, 50, 50, 1, 0},
      {"time", time, 0, 0, 10, 0, 1000, 100, 10},
      {"a part of the time", time, 500, 700, 1, 500, 700, 200, 1},
      {"longer than all", time, 0, 5000, 1, 0, 5000, 5000, 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    v1::CompareTrialsRequest request = Two(row.axis);
    request.set_start(row.start);
    request.set_end(row.end);
    const BucketPlan plan = PlanComparison(request, trials, row.buckets_max);
    EXPECT_EQ(plan.start, row.plan_start);
    EXPECT_EQ(plan.end, row.plan_end);
    EXPECT_EQ(plan.width, row.width);
    EXPECT_EQ(plan.bucket_count, row.count);
  }
  EXPECT_EQ(PlanComparison(Two(time), {{}, {}}, 10).bucket_count, 0);
  EXPECT_EQ(PlanComparison(Two(batch), {{}, {}}, 10).bucket_count, 0);
}

TEST(ComparePlanTest, EachTrialsTimeBeginsAtItsFirstSample) {
  const TrialReach late = {.first_time_us = 900'000, .last_time_us = 900'999, .end_batch = 30};
  v1::CompareTrialsRequest request = Two(v1::COMPARE_AXIS_TIME_SINCE_START);
  request.set_start(10);
  const BucketPlan plan = PlanComparison(request, {late}, 5);
  const BucketPlan of_trial = PlanOfTrial(plan, late);
  EXPECT_EQ(of_trial.start, 900'010);
  EXPECT_EQ(of_trial.end, 901'000);
  EXPECT_EQ(of_trial.width, plan.width);
  EXPECT_EQ(of_trial.bucket_count, plan.bucket_count);
  EXPECT_EQ(TimesOfTrial(request, late).start_us, 900'010);
  EXPECT_EQ(TimesOfTrial(request, late).end_us, INT64_MAX);

  const BucketPlan batches = PlanComparison(Two(), {late}, 5);
  EXPECT_EQ(PlanOfTrial(batches, late).start, 0);
  EXPECT_EQ(PlanOfTrial(batches, late).end, 30);
  EXPECT_EQ(TimesOfTrial(Two(), late).GapFirst(), 0);
  EXPECT_EQ(TimesOfTrial(Two(), late).GapLast(), 0);
}

TEST(ComparePlanTest, AWholeTrialIsOneBucketThatHoldsIt) {
  const TrialReach trial = {.first_time_us = 5'000, .last_time_us = 5'999, .end_batch = 30};
  v1::CompareTrialsRequest request = Two(v1::COMPARE_AXIS_TIME_SINCE_START);
  const auto is_whole = [&](std::int32_t buckets_max) {
    return IsWhole(PlanOfTrial(PlanComparison(request, {trial}, buckets_max), trial), trial);
  };
  EXPECT_TRUE(is_whole(1));
  EXPECT_FALSE(is_whole(2));
  request.set_end(1000);
  EXPECT_TRUE(is_whole(1));
  request.set_end(999);
  EXPECT_FALSE(is_whole(1)) << "its last sample is not in it";
  request.set_end(0);
  request.set_start(1);
  EXPECT_FALSE(is_whole(1));
  request = Two();
  EXPECT_FALSE(is_whole(1)) << "by batch";
}

TEST(ComparePlanTest, NoTimeIsTooFar) {
  const TrialReach whole = {.first_time_us = INT64_MIN + 1, .last_time_us = INT64_MAX - 1};
  v1::CompareTrialsRequest request = Two(v1::COMPARE_AXIS_TIME_SINCE_START);
  EXPECT_EQ(PlanComparison(request, {whole}, 1).end, INT64_MAX);
  const TrialReach late = {.first_time_us = INT64_MAX - 10, .last_time_us = INT64_MAX};
  request.set_end(INT64_MAX);
  const BucketPlan plan = PlanOfTrial(PlanComparison(request, {late}, 3), late);
  EXPECT_EQ(plan.start, INT64_MAX - 10);
  EXPECT_EQ(plan.end, INT64_MAX);
  EXPECT_EQ(plan.IndexOf(INT64_MAX - 1), 0u);
}

TEST(ComparePlanTest, AnswersAreBounded) {
  EXPECT_TRUE(CheckAnswerSize(100, 10, 1000).ok());
  EXPECT_TRUE(CheckAnswerSize(0, 16, 10'000).ok());
  EXPECT_EQ(
      std::string(CheckAnswerSize(101, 10, 1000).message()),
      "101 series times 10 trials times 1000 buckets is over 1000000: lower max_buckets to 990 "
      "or choose fewer series");
  EXPECT_EQ(std::string(CheckAnswerSize(100'000, 11, 1).message()),
            "100000 series times 11 trials times 1 buckets is over 1000000: choose fewer series");
}

}  // namespace
}  // namespace stepwell
