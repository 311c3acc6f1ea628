#include "server/bucket_plan.h"

#include "absl/strings/str_cat.h"
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

absl::Status CheckAnswerSize(std::size_t series_count, std::size_t trial_count,
                             std::int64_t bucket_count) {
  const auto each = static_cast<std::int64_t>(series_count * trial_count);
  if (each == 0 || bucket_count <= kAnswerBucketsMax / each) return absl::OkStatus();
  const std::int64_t allowed = kAnswerBucketsMax / each;
  return absl::ResourceExhaustedError(
      absl::StrCat(series_count, " series times ",
                   trial_count > 1 ? absl::StrCat(trial_count, " trials times ") : "", bucket_count,
                   " buckets is over ", kAnswerBucketsMax, ": ",
                   allowed > 0 ? absl::StrCat("lower max_buckets to ", allowed, " or ") : "",
                   "choose fewer series"));
}

std::optional<BucketPlan> Aligned(const BucketPlan& plan, std::int64_t unit,
                                  std::int32_t buckets_max) {
  STEPWELL_CHECK(unit >= 1 && buckets_max >= 1);
  if (plan.start == plan.end) return plan;
  BucketPlan aligned{.axis = plan.axis};
  const std::int64_t before = (plan.start % unit + unit) % unit;
  const std::int64_t behind = (unit - (plan.end % unit + unit) % unit) % unit;
  if (__builtin_sub_overflow(plan.start, before, &aligned.start) ||
      __builtin_add_overflow(plan.end, behind, &aligned.end)) {
    return std::nullopt;
  }
  const std::uint64_t units =
      Distance(aligned.start, aligned.end) / static_cast<std::uint64_t>(unit);
  const std::uint64_t units_each = DivideUp(units, static_cast<std::uint64_t>(buckets_max));
  if (units_each > static_cast<std::uint64_t>(INT64_MAX / unit)) return std::nullopt;
  aligned.width = static_cast<std::int64_t>(units_each) * unit;
  aligned.bucket_count = static_cast<std::int64_t>(DivideUp(units, units_each));
  return aligned;
}

}  // namespace stepwell
