// BucketFold: samples and whole rows to the statistics of buckets, so that no peak is lost.
// A core. Confined to one thread.
//
//   BucketFold fold(plan);
//   fold.AddSample(time_us, batch, value);
//   for (const Bucket& bucket : fold.buckets()) ...
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "server/bucket_plan.h"

namespace stepwell {

// NaN samples are counted apart and take no part in the rest.
struct Bucket {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double last = 0;  // the newest; of several at one time the one added last
  std::int64_t last_time_us = std::numeric_limits<std::int64_t>::min();
  std::uint64_t count = 0;
  std::uint64_t nan_count = 0;

  // Stays between min and max even where the sum has rounded or overflowed. Here, since an answer may have a million.
  double mean() const {
    const double mean = sum / static_cast<double>(count);
    // NaN, from infinities of both signs, is left as it is.
    return std::isnan(mean) ? mean : std::clamp(mean, min, max);
  }
};

// What a stored row, or a bucket of a rollup, says of its samples; all of them lie in one bucket.
struct RowStatistics {
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
  double last = 0;
  std::uint64_t count = 0;  // those that are not NaN
};

class BucketFold {
 public:
  // Holds a bucket for each of the plan from the first sample on, in `memory`, whatever that had before.
  explicit BucketFold(const BucketPlan& plan, std::vector<Bucket> memory = {})
      : plan_(plan), buckets_(std::move(memory)) {
    buckets_.clear();
  }

  // Samples outside of the plan are left out, and on the batch axis those without batch.
  void AddSample(std::int64_t time_us, std::int32_t batch, double value);
  // Samples in their order, one for each tick that is present (none given = all). REQUIRES: the axis of time.
  void AddTicks(std::span<const std::int64_t> times_us, std::span<const std::uint8_t> presence,
                std::span<const double> values);
  // True if the row's statistics can stand for its samples: by time, without NaN, in one bucket.
  static bool CanAddRow(const BucketPlan& plan, std::int64_t first_time_us,
                        std::int64_t last_time_us, std::int64_t nan_count);
  // REQUIRES: CanAddRow.
  void AddRow(const RowStatistics& row);
  // Samples of which one lies at `place`. REQUIRES: the plan holds it.
  void AddPart(std::int64_t place, const RowStatistics& part, std::uint64_t nan_count);

  const BucketPlan& plan() const { return plan_; }
  // By index; empty ones have count and nan_count 0. Empty when nothing was added.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // All of the plan's, to add to (rollup_fold.h).
  std::vector<Bucket>& OpenBuckets() {
    if (buckets_.empty()) buckets_.resize(static_cast<std::size_t>(plan_.bucket_count));
    return buckets_;
  }
  // Its memory, for the next fold.
  std::vector<Bucket> TakeBuckets() && { return std::move(buckets_); }

 private:
  // A bucket's place: [first, last], which int64 holds.
  struct Cell {
    bool Holds(std::int64_t place) const { return place >= first && place <= last; }
    std::size_t index = 0;
    std::int64_t first = 1;
    std::int64_t last = 0;
  };

  // Neighbours nearly always share a bucket: a division for each of these, not for each sample.
  Bucket& At(std::int64_t place) {
    if (!cell_.Holds(place)) cell_ = CellOf(place);
    return buckets_[cell_.index];
  }
  Cell CellOf(std::int64_t place);
  // From `tick` on, which lies in the plan, up to the first in another bucket; how many values that were.
  std::size_t AddRun(std::span<const std::int64_t> times_us, std::span<const std::uint8_t> presence,
                     std::span<const double> values, std::size_t& tick);

  const BucketPlan plan_;
  Cell cell_;  // of the bucket that was used last
  std::vector<Bucket> buckets_;
};

}  // namespace stepwell
