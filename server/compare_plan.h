// ComparePlan: along what trials are compared: the request checked, and the buckets that each trial's
// samples fall into. A core; pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/bucket_plan.h"
#include "server/query_range.h"
#include "stepwell/v1/compare.pb.h"

namespace stepwell {

// All but the trials themselves and the text of selectors. kInvalidArgument naming the field.
[[nodiscard]] absl::Status CheckCompareRequest(const v1::CompareTrialsRequest& request_untrusted);
// REQUIRES: CheckCompareRequest.
BucketAxis AxisOf(const v1::CompareTrialsRequest& request);

// How far a trial reaches.
struct TrialReach {
  std::int64_t first_time_us = 0;  // both 0 = it has no samples
  std::int64_t last_time_us = 0;
  std::int64_t end_batch = 0;  // one past its last
};

// From 0 at each trial's first sample, or from batch 0. REQUIRES: CheckCompareRequest, buckets_max >= 1.
BucketPlan PlanComparison(const v1::CompareTrialsRequest& request,
                          const std::vector<TrialReach>& trials, std::int32_t buckets_max);

// The same buckets where one trial's samples lie: by microseconds since 1970, or by batch.
BucketPlan PlanOfTrial(const BucketPlan& plan, const TrialReach& trial);

// One bucket of time that holds all samples of the trial: wider, it holds no others.
bool IsWhole(const BucketPlan& of_trial, const TrialReach& trial);

// The times that the request covers of one trial, for its gaps; both ends open where it covers all.
TimeBounds TimesOfTrial(const v1::CompareTrialsRequest& request, const TrialReach& trial);

}  // namespace stepwell
