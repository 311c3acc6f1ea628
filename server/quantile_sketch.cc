#include "server/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace stepwell {
namespace {

constexpr double kGamma =
    (1 + QuantileSketch::kRelativeError) / (1 - QuantileSketch::kRelativeError);
constexpr double kZeroBelow = 1e-12;
// Largest |ceil(log_g x)| of a double is 35,500; infinities lie beyond it.
constexpr std::int32_t kInfinityIndex = 40'000;
// Positive values have keys from kOffset - 40,000 on, so that every one is above 0 (zero's key).
constexpr std::int32_t kOffset = 50'000;

std::int32_t KeyOf(double value) {
  const double size = std::abs(value);
  if (size < kZeroBelow) return 0;
  std::int32_t index = kInfinityIndex;
  if (std::isfinite(size)) {
    index = static_cast<std::int32_t>(std::ceil(std::log(size) / std::log(kGamma)));
  }
  const std::int32_t key = index + kOffset;
  return value > 0 ? key : -key;
}

double ValueOf(std::int32_t key) {
  if (key == 0) return 0;
  const std::int32_t index = std::abs(key) - kOffset;
  const double size = index == kInfinityIndex
                          ? std::numeric_limits<double>::infinity()
                          : std::min(std::pow(kGamma, index - 1) * (2 / (1 + 1 / kGamma)),
                                     std::numeric_limits<double>::max());
  return key > 0 ? size : -size;
}

}  // namespace

void QuantileSketch::Add(double value) {
  STEPWELL_CHECK(!std::isnan(value));
  ++count_;
  if (!exact()) {
    CountInBucket(value);
    return;
  }
  values_.push_back(value);
  sorted_ = false;
  if (values_.size() > kExactMax) Collapse();
}

void QuantileSketch::CountInBucket(double value) { ++buckets_[KeyOf(value)]; }

void QuantileSketch::Collapse() {
  for (const double value : values_) CountInBucket(value);
  values_ = {};
}

double QuantileSketch::Quantile(double q) {
  STEPWELL_CHECK(q > 0 && q <= 1 && count_ > 0);
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_))));
  if (exact()) {
    if (!sorted_) std::sort(values_.begin(), values_.end());
    sorted_ = true;
    return values_[std::min(rank, count_) - 1];
  }
  std::uint64_t below = 0;
  for (const auto& [key, count] : buckets_) {
    below += count;
    if (below >= rank) return ValueOf(key);
  }
  return ValueOf(buckets_.rbegin()->first);
}

}  // namespace stepwell
