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

// What is asked of a metric group, as far as the choice of a resolution goes.
struct AskedGroup {
  std::string metric_group;
  double share = 1;  // of all series of the group: 0 ... 1
};

// `wanted` UNSPECIFIED: the coarsest rollup of which each bucket holds two steps or more, so that
// whole steps widen a bucket by half at most. Where that is none and the range holds more samples of the
// series than kSamplesReadMost, about, the finest rollup, if buckets get no wider by it than kWidenedMost
// times, and twice that where there are twice as many: a chart of a thousand series is there at once, and a
// part of it in full. Samples where some row of
// the metric groups in the range has no rollup, and on the batch axis. REQUIRES: IsResolution(wanted).
BucketResolution ChooseResolution(const BucketPlan& plan, std::int32_t buckets_max,
                                  v1::Resolution wanted, const std::vector<UsageRecord>& usage,
                                  const std::vector<AskedGroup>& asked);
// Some 10 ms: hundreds of rows of PostgreSQL's, and 12 ns each from there to its bucket, of which rows at the
// range's ends hold more than it asks for. A page asks for several such charts at once.
inline constexpr double kSamplesReadMost = 4e5;
inline constexpr double kWidenedMost = 2.5;
inline constexpr double kExcessCounted = 2;

// kInvalidArgument for a value that is none of the enum's, and for rollups by batch.
[[nodiscard]] absl::Status CheckResolution(v1::Resolution wanted_untrusted, BucketAxis axis);

}  // namespace stepwell
