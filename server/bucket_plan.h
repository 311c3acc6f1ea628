// BucketPlan: which buckets an answer has: a range of time or of batches cut into at most so many
// cells of one whole width. A core; a value.
//
//   const BucketPlan plan = PlanBuckets(BucketAxis::kTime, start_us, end_us, 500);
//   if (plan.Holds(time_us)) ++counts[plan.IndexOf(time_us)];
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace stepwell {

enum class BucketAxis { kTime, kBatch };

struct BucketPlan {
  BucketAxis axis = BucketAxis::kTime;
  // [start, end) in microseconds since 1970, or batches. start == end: no buckets.
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t width = 1;  // at least 1
  std::int64_t bucket_count = 0;

  bool Holds(std::int64_t place) const { return place >= start && place < end; }
  // REQUIRES: Holds(place).
  std::uint32_t IndexOf(std::int64_t place) const;
  bool operator==(const BucketPlan&) const = default;
};

inline constexpr std::int32_t kBucketsDefault = 500;
inline constexpr std::int32_t kBucketsMax = 10'000;
// Over all series of an answer: about 60 MB.
inline constexpr std::int64_t kAnswerBucketsMax = 1'000'000;

// The narrowest whole width that needs at most `buckets_max` buckets; the last one may reach over
// the end. REQUIRES: start <= end, buckets_max >= 1.
BucketPlan PlanBuckets(BucketAxis axis, std::int64_t start, std::int64_t end,
                       std::int32_t buckets_max);

// kResourceExhausted where series times trials times buckets are over kAnswerBucketsMax.
[[nodiscard]] absl::Status CheckAnswerSize(std::size_t series_count, std::size_t trial_count,
                                           std::int64_t bucket_count);

// `plan` with its start, end and width on whole multiples of `unit`, no more buckets than
// `buckets_max`; nullopt where int64 cannot hold that. REQUIRES: unit >= 1, buckets_max >= 1.
std::optional<BucketPlan> Aligned(const BucketPlan& plan, std::int64_t unit,
                                  std::int32_t buckets_max);

}  // namespace stepwell
