#include "server/rollup_fold.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "storage/presence.h"

namespace stepwell {
namespace {

// A bucket of the fold in steps of the grid: [first, end).
struct Place {
  std::size_t index = 0;
  std::int64_t first = 0;
  std::int64_t end = 0;
};

// Where the steps of a grid lie in a plan.
class Places {
 public:
  Places(const BucketPlan& plan, std::int64_t step_us)
      : start_(plan.start / step_us), steps_(plan.width / step_us) {
    place_ = {0, start_, start_ + steps_};
  }

  // REQUIRES: `step` is none before that of the last call. Most lie in the same bucket, or in the next.
  const Place& Of(std::int64_t step) {
    if (step < place_.end) return place_;
    std::size_t further = 1;
    if (step >= place_.end + steps_) {
      further = static_cast<std::size_t>((step - place_.first) / steps_);
    }
    place_.index += further;
    place_.first += static_cast<std::int64_t>(further) * steps_;
    place_.end = place_.first + steps_;
    return place_;
  }

 private:
  const std::int64_t start_;
  const std::int64_t steps_;
  Place place_;
};

// The column of which elements are added.
struct Parts {
  const RollupGrid& grid;
  const RollupColumn& column;

  std::int64_t CountOf(std::size_t step, std::size_t own) const {
    return column.counts.empty() ? grid.tick_counts[step] : column.counts[own];
  }
  std::int64_t LastTimeOf(std::size_t step, std::size_t own) const {
    return grid.last_times_us[step] - (column.last_lags_us.empty() ? 0 : column.last_lags_us[own]);
  }
  void NoteLast(std::size_t step, std::size_t own, Bucket& bucket) const {
    const std::int64_t time_us = LastTimeOf(step, own);
    if (time_us < bucket.last_time_us) return;
    bucket.last_time_us = time_us;
    bucket.last = column.lasts[own];
  }
};

// Each step of the grid has its element, and no sample is NaN. The steps of a bucket go into a copy, which the compiler keeps in registers;
// later ones have later samples, so that the last one's is the newest.
void AddAll(const Parts& parts, std::size_t first, std::size_t end, Places& places,
            std::vector<Bucket>& buckets) {
  const std::vector<std::int64_t>& steps = parts.grid.buckets;
  const RollupColumn& column = parts.column;
  for (std::size_t i = first; i < end;) {
    const Place place = places.Of(steps[i]);
    Bucket& bucket = buckets[place.index];
    double min = bucket.min;
    double max = bucket.max;
    double sum = bucket.sum;
    std::uint64_t count = 0;
    std::size_t newest = i;
    do {
      // What a database says of a step without samples means nothing.
      if (const std::int64_t own = parts.CountOf(i, i); own > 0) {
        min = std::min(min, column.mins[i]);
        max = std::max(max, column.maxs[i]);
        sum += column.sums[i];
        count += static_cast<std::uint64_t>(own);
        newest = i;
      }
      ++i;
    } while (i < end && steps[i] < place.end);
    if (count == 0) continue;
    bucket.min = min;
    bucket.max = max;
    bucket.sum = sum;
    bucket.count += count;
    parts.NoteLast(newest, newest, bucket);
  }
}

void AddPresent(const Parts& parts, std::size_t first, std::size_t end, Places& places,
                std::vector<Bucket>& buckets) {
  const RollupColumn& column = parts.column;
  const std::span<const std::uint8_t> presence = column.presence;
  std::size_t next = presence.empty() ? first : CountPresent(presence.first(first));
  for (std::size_t i = first; i < end; ++i) {
    if (!presence.empty() && presence[i] == 0) continue;
    const std::size_t own = next++;
    const std::int64_t nan_count = column.nan_counts.empty() ? 0 : column.nan_counts[own];
    const std::int64_t count = parts.CountOf(i, own) - nan_count;
    if (count == 0 && nan_count == 0) continue;
    Bucket& bucket = buckets[places.Of(parts.grid.buckets[i]).index];
    bucket.nan_count += static_cast<std::uint64_t>(nan_count);
    if (count == 0) continue;
    bucket.min = std::min(bucket.min, column.mins[own]);
    bucket.max = std::max(bucket.max, column.maxs[own]);
    bucket.sum += column.sums[own];
    bucket.count += static_cast<std::uint64_t>(count);
    parts.NoteLast(i, own, bucket);
  }
}

}  // namespace

void AddRollup(const RollupGrid& grid, const RollupColumn& column, BucketFold& fold) {
  const BucketPlan& plan = fold.plan();
  const std::int64_t step_us = INT64_C(1'000'000) * grid.step_seconds;
  STEPWELL_CHECK(plan.axis == BucketAxis::kTime && plan.start % step_us == 0 &&
                 plan.width % step_us == 0);
  // Of the first that begins at `time_us` or later.
  const auto index_of = [&](std::int64_t time_us) {
    const std::int64_t step = time_us / step_us + (time_us % step_us > 0 ? 1 : 0);
    const auto found = std::lower_bound(grid.buckets.begin(), grid.buckets.end(), step);
    return static_cast<std::size_t>(found - grid.buckets.begin());
  };
  const std::size_t first = index_of(plan.start);
  const std::size_t end = index_of(plan.end);
  if (first >= end) return;
  Places places(plan, step_us);
  const bool has_all = column.presence.empty() && column.nan_counts.empty();
  (has_all ? AddAll : AddPresent)({grid, column}, first, end, places, fold.OpenBuckets());
}

}  // namespace stepwell
