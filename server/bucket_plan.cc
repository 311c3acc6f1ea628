#include "server/bucket_plan.h"

#include "base/check.h"

namespace stepwell {
namespace {

// Differences of two int64 that may lie further apart than an int64 reaches.
std::uint64_t Distance(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

std::uint64_t DivideUp(std::uint64_t dividend, std::uint64_t divisor) {
  return dividend / divisor + (dividend % divisor == 0 ? 0 : 1);
}

}  // namespace

std::uint32_t BucketPlan::IndexOf(std::int64_t place) const {
  return static_cast<std::uint32_t>(Distance(start, place) / static_cast<std::uint64_t>(width));
}

BucketPlan PlanBuckets(BucketAxis axis, std::int64_t start, std::int64_t end,
                       std::int32_t buckets_max) {
  STEPWELL_CHECK(start <= end && buckets_max >= 1);
  BucketPlan plan{.axis = axis, .start = start, .end = end};
  if (start == end) return plan;
  const std::uint64_t span = Distance(start, end);
  std::uint64_t width = DivideUp(span, static_cast<std::uint64_t>(buckets_max));
  // One bucket over the whole of int64 would have a width that int64 cannot hold.
  if (width > INT64_MAX) width = INT64_MAX;
  plan.width = static_cast<std::int64_t>(width);
  plan.bucket_count = static_cast<std::int64_t>(DivideUp(span, width));
  return plan;
}

}  // namespace stepwell
