#include "server/bucket_fold.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace stepwell {
namespace {

inline void AddTo(Bucket& bucket, std::int64_t time_us, double value) {
  if (std::isnan(value)) {
    ++bucket.nan_count;
    return;
  }
  bucket.min = std::min(bucket.min, value);
  bucket.max = std::max(bucket.max, value);
  bucket.sum += value;
  if (time_us >= bucket.last_time_us) {
    bucket.last_time_us = time_us;
    bucket.last = value;
  }
  ++bucket.count;
}

}  // namespace

BucketFold::Cell BucketFold::CellOf(std::int64_t place) {
  OpenBuckets();
  Cell cell;
  cell.index = plan_.IndexOf(place);
  // Without sign, since int64 need not hold what lies between the plan's ends.
  const auto width = static_cast<std::uint64_t>(plan_.width);
  const auto first = static_cast<std::uint64_t>(plan_.start) + cell.index * width;
  const std::uint64_t left = static_cast<std::uint64_t>(plan_.end) - first;
  cell.first = static_cast<std::int64_t>(first);
  cell.last = static_cast<std::int64_t>(first + std::min(left, width) - 1);
  return cell;
}

void BucketFold::AddSample(std::int64_t time_us, std::int32_t batch, double value) {
  if (plan_.axis == BucketAxis::kBatch && batch < 0) return;
  const std::int64_t place = plan_.axis == BucketAxis::kTime ? time_us : batch;
  if (!plan_.Holds(place)) return;
  AddTo(At(place), time_us, value);
}

void BucketFold::AddTicks(std::span<const std::int64_t> times_us,
                          std::span<const std::uint8_t> presence, std::span<const double> values) {
  STEPWELL_CHECK(plan_.axis == BucketAxis::kTime);
  std::size_t value = 0;
  for (std::size_t tick = 0; tick < times_us.size();) {
    if (!presence.empty() && presence[tick] == 0) {
      ++tick;
    } else if (!plan_.Holds(times_us[tick])) {
      ++tick;
      ++value;
    } else {
      value += AddRun(times_us, presence, values.subspan(value), tick);
    }
  }
}

// Those of one bucket in a row: they go into a copy, which the compiler keeps in registers.
std::size_t BucketFold::AddRun(std::span<const std::int64_t> times_us,
                               std::span<const std::uint8_t> presence,
                               std::span<const double> values, std::size_t& tick) {
  Bucket& bucket = At(times_us[tick]);
  const Cell cell = cell_;
  Bucket copy = bucket;
  std::size_t value = 0;
  std::size_t at = tick;
  if (presence.empty()) {
    for (; at < times_us.size() && cell.Holds(times_us[at]); ++at) {
      AddTo(copy, times_us[at], values[value++]);
    }
  } else {
    for (; at < times_us.size(); ++at) {
      if (presence[at] == 0) continue;
      if (!cell.Holds(times_us[at])) break;
      AddTo(copy, times_us[at], values[value++]);
    }
  }
  bucket = copy;
  tick = at;
  return value;
}

bool BucketFold::CanAddRow(const BucketPlan& plan, std::int64_t first_time_us,
                           std::int64_t last_time_us, std::int64_t nan_count) {
  return plan.axis == BucketAxis::kTime && nan_count == 0 && plan.Holds(first_time_us) &&
         plan.Holds(last_time_us) && plan.IndexOf(first_time_us) == plan.IndexOf(last_time_us);
}

void BucketFold::AddRow(const RowStatistics& row) {
  STEPWELL_CHECK(CanAddRow(plan_, row.first_time_us, row.last_time_us, 0));
  AddPart(row.first_time_us, row, /*nan_count=*/0);
}

void BucketFold::AddPart(std::int64_t place, const RowStatistics& part, std::uint64_t nan_count) {
  if (part.count == 0 && nan_count == 0) return;
  Bucket& bucket = At(place);
  bucket.nan_count += nan_count;
  if (part.count == 0) return;
  bucket.min = std::min(bucket.min, part.min);
  bucket.max = std::max(bucket.max, part.max);
  bucket.sum += part.sum;
  if (part.last_time_us >= bucket.last_time_us) {
    bucket.last_time_us = part.last_time_us;
    bucket.last = part.last;
  }
  bucket.count += part.count;
}

}  // namespace stepwell
