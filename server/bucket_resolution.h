// BucketResolution: from what an answer's buckets are made: from samples, or from rollups of 10 s or
// 60 s, whose buckets then begin and end on whole steps. A core; pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/bucket_plan.h"
#include "stepwell/v1/query.pb.h"
#include "storage/read_store.h"

namespace stepwell {

struct BucketResolution {
  std::int32_t step_seconds = 0;  // 0 = samples
  BucketPlan plan = {};

  v1::Resolution wire() const;
  bool operator==(const BucketResolution&) const = default;
};

// `wanted` UNSPECIFIED: the coarsest rollup of which each bucket holds two steps or more, so that
// whole steps widen a bucket by half at most. Samples where some row of `metric_groups` in the range
// has no rollup, and on the batch axis. REQUIRES: IsResolution(wanted).
BucketResolution ChooseResolution(const BucketPlan& plan, std::int32_t buckets_max,
                                  v1::Resolution wanted, const std::vector<UsageRecord>& usage,
                                  const std::vector<std::string>& metric_groups);

// kInvalidArgument for a value that is none of the enum's, and for rollups by batch.
[[nodiscard]] absl::Status CheckResolution(v1::Resolution wanted_untrusted, BucketAxis axis);

}  // namespace stepwell
