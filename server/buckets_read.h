// BucketsRead: series of one trial, folded group by group into buckets: rollups where the resolution
// has them, rows and heads. What QueryBuckets and CompareTrials are made from. Blocks on the database.
//
//   STEPWELL_RETURN_IF_ERROR(ReadBuckets(view, groups, resolution, nullptr,
//       [&](std::size_t group, const std::vector<Bucket>& buckets) { ... }));
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/batch_attempts.h"
#include "server/bucket_fold.h"
#include "server/bucket_resolution.h"
#include "server/series_group.h"
#include "server/trial_view.h"

namespace stepwell {

// Takes the buckets of one group, by index; empty where the plan holds none of its samples.
using BucketsSink = std::function<void(std::size_t group, const std::vector<Bucket>& buckets)>;

// Hands each group that has series to `sink`, once, as soon as its last series is read. `attempts` tells
// which samples count on the batch axis; null on that of time. Memory: the buckets of groups that are
// begun. REQUIRES: the plan has buckets, and each series is in one group.
[[nodiscard]] absl::Status ReadBuckets(TrialView& view, const std::vector<SeriesGroup>& groups,
                                       const BucketResolution& resolution,
                                       const BatchAttempts* attempts, const BucketsSink& sink);

// Stored and in heads.
[[nodiscard]] absl::StatusOr<BatchAttempts> ReadBatchAttempts(TrialView& view);

}  // namespace stepwell
