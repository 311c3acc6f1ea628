// IntervalSet: a set of times as half-open intervals [begin, end) in nanoseconds, disjoint and in order.
// Confined to one thread.
//
//   const IntervalSet busy = IntervalSet::Of({{0, 5}, {3, 9}});   // [0, 9)
//   busy.Without(other).length();
#pragma once

#include <cstdint>
#include <vector>

namespace stepwell {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Interval&) const = default;
};

class IntervalSet {
 public:
  IntervalSet() = default;
  // The union of `intervals`, in any order; empty and turned ones count for nothing.
  static IntervalSet Of(std::vector<Interval> intervals);

  [[nodiscard]] IntervalSet Within(Interval bounds) const;
  [[nodiscard]] IntervalSet Without(const IntervalSet& other) const;
  [[nodiscard]] IntervalSet And(const IntervalSet& other) const;
  [[nodiscard]] IntervalSet Or(const IntervalSet& other) const;

  std::int64_t length() const;
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  std::vector<Interval> intervals_;
};

}  // namespace stepwell
