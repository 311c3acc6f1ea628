#include "server/bucket_fold.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace stepwell {

double Bucket::mean() const {
  const double mean = sum / static_cast<double>(count);
  // NaN, from infinities of both signs, is left as it is.
  return std::isnan(mean) ? mean : std::clamp(mean, min, max);
}

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

Bucket& BucketFold::At(std::int64_t place) {
  if (buckets_.empty()) buckets_.resize(static_cast<std::size_t>(plan_.bucket_count));
  return buckets_[plan_.IndexOf(place)];
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
  // Neighbours in time nearly always share a bucket: a division for each of these, not for each sample.
  Bucket* bucket = nullptr;
  std::int64_t start = 0;
  std::int64_t last = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    if (!presence.empty() && presence[i] == 0) continue;
    const double value = values[at++];
    const std::int64_t time_us = times_us[i];
    if (bucket == nullptr || time_us < start || time_us > last) {
      if (!plan_.Holds(time_us)) continue;
      bucket = &At(time_us);
      // Without sign, since int64 need not hold what lies between the plan's ends.
      const auto width = static_cast<std::uint64_t>(plan_.width);
      const auto first = static_cast<std::uint64_t>(plan_.start) + plan_.IndexOf(time_us) * width;
      const std::uint64_t left = static_cast<std::uint64_t>(plan_.end) - first;
      start = static_cast<std::int64_t>(first);
      last = static_cast<std::int64_t>(first + std::min(left, width) - 1);
    }
    AddTo(*bucket, time_us, value);
  }
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
