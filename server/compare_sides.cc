#include "server/compare_sides.h"

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "server/bucket_plan.h"

namespace stepwell {
namespace {

using Side = v1::CompareTrialsResponse::Side;

// All of them as one.
Bucket Total(const std::vector<Bucket>& buckets) {
  BucketFold fold({.start = 0, .end = 1, .width = 1, .bucket_count = 1});
  for (const Bucket& bucket : buckets) {
    fold.AddPart(0,
                 {.last_time_us = bucket.last_time_us,
                  .min = bucket.min,
                  .max = bucket.max,
                  .sum = bucket.sum,
                  .last = bucket.last,
                  .count = bucket.count},
                 bucket.nan_count);
  }
  return fold.buckets().empty() ? Bucket() : fold.buckets().front();
}

void AddSideBuckets(const std::vector<Bucket>& buckets, bool has_nan, Side& side) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    if (bucket.count == 0 && bucket.nan_count == 0) continue;
    const bool is_nan = bucket.count == 0;
    side.add_indexes(static_cast<std::uint32_t>(i));
    side.add_mins(is_nan ? kNan : bucket.min);
    side.add_maxs(is_nan ? kNan : bucket.max);
    side.add_means(is_nan ? kNan : bucket.mean());
    side.add_counts(bucket.count);
    if (has_nan) side.add_nan_counts(bucket.nan_count);
  }
}

}  // namespace

void SetStatistics(const std::vector<Bucket>& buckets, bool with_buckets, Side& side) {
  const Bucket total = Total(buckets);
  side.set_nan_count(total.nan_count);
  if (with_buckets) AddSideBuckets(buckets, total.nan_count > 0, side);
  if (total.count == 0) return;
  side.set_count(total.count);
  side.set_min(total.min);
  side.set_max(total.max);
  side.set_mean(total.mean());
  side.set_last(total.last);
}

void SetDifferences(const std::vector<bool>& have_unit_of_first,
                    v1::CompareTrialsResponse::ComparedSeries& series) {
  STEPWELL_CHECK(series.sides_size() > 0);
  STEPWELL_CHECK(have_unit_of_first.size() == static_cast<std::size_t>(series.sides_size()));
  Side& first = *series.mutable_sides(0);
  if (first.count() == 0) return;
  first.set_mean_ratio(1);
  for (int i = 1; i < series.sides_size(); ++i) {
    Side& side = *series.mutable_sides(i);
    if (side.count() == 0 || !have_unit_of_first[static_cast<std::size_t>(i)]) continue;
    side.set_mean_difference(side.mean() - first.mean());
    if (first.mean() != 0) side.set_mean_ratio(side.mean() / first.mean());
  }
}

}  // namespace stepwell
