#include "server/compare_plan.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/bounded_math.h"

namespace stepwell {
namespace {

constexpr int kTrialsMin = 2;
constexpr int kTrialsMax = 16;

// On the axis.
std::int64_t EndOf(const TrialReach& trial, BucketAxis axis) {
  if (axis == BucketAxis::kBatch) return trial.end_batch;
  if (trial.first_time_us == 0 && trial.last_time_us == 0) return 0;
  std::int64_t length_us = 0;
  if (__builtin_sub_overflow(trial.last_time_us, trial.first_time_us, &length_us)) {
    return INT64_MAX;
  }
  return BoundedSum(length_us, 1);
}

absl::Status CheckPlace(const char* field, std::int64_t place, std::int64_t most) {
  if (place >= 0 && place <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", place, "; allowed: 0 ... ", most));
}

}  // namespace

absl::Status CheckCompareRequest(const v1::CompareTrialsRequest& request_untrusted) {
  const v1::CompareTrialsRequest& given = request_untrusted;
  if (given.trials_size() < kTrialsMin || given.trials_size() > kTrialsMax) {
    return absl::InvalidArgumentError(absl::StrCat("trials has ", given.trials_size(),
                                                   " entries; allowed: ", kTrialsMin, " ... ",
                                                   kTrialsMax));
  }
  for (int i = 0; i < given.selectors_size(); ++i) {
    if (given.selectors(i).series_nos().empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("selectors[", i,
                     "].series_nos is given; allowed: empty, since trials number "
                     "their series each by itself"));
  }
  if (!v1::CompareAxis_IsValid(given.axis())) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis is ", static_cast<int>(given.axis()), "; allowed: 0, 1, 2"));
  }
  const std::int64_t most = AxisOf(given) == BucketAxis::kBatch
                                ? std::numeric_limits<std::int32_t>::max()
                                : std::numeric_limits<std::int64_t>::max();
  for (const auto& checked :
       {CheckPlace("start", given.start(), most), CheckPlace("end", given.end(), most)}) {
    if (!checked.ok()) return checked;
  }
  if (given.end() != 0 && given.end() < given.start()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "end is ", given.end(), "; allowed: 0, or start (", given.start(), ") and above"));
  }
  return absl::OkStatus();
}

BucketAxis AxisOf(const v1::CompareTrialsRequest& request) {
  return request.axis() == v1::COMPARE_AXIS_TIME_SINCE_START ? BucketAxis::kTime
                                                             : BucketAxis::kBatch;
}

BucketPlan PlanComparison(const v1::CompareTrialsRequest& request,
                          const std::vector<TrialReach>& trials, std::int32_t buckets_max) {
  const BucketAxis axis = AxisOf(request);
  std::int64_t end = request.end();
  for (const TrialReach& trial : trials) {
    if (request.end() == 0) end = std::max(end, EndOf(trial, axis));
  }
  return PlanBuckets(axis, request.start(), std::max(request.start(), end), buckets_max);
}

BucketPlan PlanOfTrial(const BucketPlan& plan, const TrialReach& trial) {
  BucketPlan of_trial = plan;
  if (plan.axis == BucketAxis::kBatch) return of_trial;
  of_trial.start = BoundedSum(plan.start, trial.first_time_us);
  of_trial.end = BoundedSum(plan.end, trial.first_time_us);
  return of_trial;
}

bool IsWhole(const BucketPlan& of_trial, const TrialReach& trial) {
  return of_trial.axis == BucketAxis::kTime && of_trial.bucket_count == 1 &&
         of_trial.Holds(trial.first_time_us) && of_trial.Holds(trial.last_time_us);
}

TimeBounds TimesOfTrial(const v1::CompareTrialsRequest& request, const TrialReach& trial) {
  TimeBounds bounds;
  if (AxisOf(request) == BucketAxis::kBatch) return bounds;
  if (request.start() != 0) bounds.start_us = BoundedSum(request.start(), trial.first_time_us);
  if (request.end() != 0) bounds.end_us = BoundedSum(request.end(), trial.first_time_us);
  return bounds;
}

}  // namespace stepwell
