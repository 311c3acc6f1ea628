// QuantileSketch: quantiles of many values in small memory. Exact up to 10^6 values, which are then
// all kept; beyond, values are counted in buckets whose borders grow by a constant factor, so that
// a quantile is off by at most 1 % of itself. A core; thread-compatible.
//
// The buckets are those of DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable
// quantile sketch with relative-error guarantees", VLDB 2019): with a = 0.01 and
// g = (1 + a) / (1 - a), the value x > 0 is counted in bucket i = ceil(log_g x), which holds
// (g^(i-1), g^i]; the answer 2 g^i / (g + 1) is within a * x of every x in it. Negative values
// have buckets of their own; values nearer to zero than 10^-12 (a thousandth of a nanosecond, for
// timings) count as zero.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace stepwell {

class QuantileSketch {
 public:
  static constexpr std::size_t kExactMax = 1'000'000;
  static constexpr double kRelativeError = 0.01;

  // NaN is not a value. REQUIRES: !isnan(value).
  void Add(double value);
  std::uint64_t count() const { return count_; }
  bool exact() const { return buckets_.empty(); }
  // Values that are kept each by itself.
  std::size_t held_value_count() const { return values_.size(); }
  // The smallest value with at least `q` of all values at or below it (nearest rank).
  // REQUIRES: 0 < q <= 1, count() > 0. O(values) at its first call after an Add.
  double Quantile(double q);

 private:
  void CountInBucket(double value);
  void Collapse();

  std::uint64_t count_ = 0;
  std::vector<double> values_;
  bool sorted_ = false;
  // Key: sign and index in the order of the values; see BucketOf.
  std::map<std::int32_t, std::uint64_t> buckets_;
};

}  // namespace stepwell
