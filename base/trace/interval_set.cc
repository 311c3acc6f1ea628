#include "base/trace/interval_set.h"

#include <algorithm>
#include <utility>

namespace stepwell {

IntervalSet IntervalSet::Of(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  IntervalSet set;
  for (const Interval& each : intervals) {
    if (each.begin >= each.end) continue;
    if (!set.intervals_.empty() && each.begin <= set.intervals_.back().end) {
      set.intervals_.back().end = std::max(set.intervals_.back().end, each.end);
    } else {
      set.intervals_.push_back(each);
    }
  }
  return set;
}

IntervalSet IntervalSet::Within(Interval bounds) const {
  IntervalSet set;
  auto each =
      std::lower_bound(intervals_.begin(), intervals_.end(), bounds.begin,
                       [](const Interval& a, std::int64_t begin) { return a.end <= begin; });
  for (; each != intervals_.end() && each->begin < bounds.end; ++each) {
    const Interval part = {std::max(each->begin, bounds.begin), std::min(each->end, bounds.end)};
    if (part.begin < part.end) set.intervals_.push_back(part);
  }
  return set;
}

IntervalSet IntervalSet::Without(const IntervalSet& other) const {
  IntervalSet set;
  auto hole = other.intervals_.begin();
  for (Interval rest : intervals_) {
    while (hole != other.intervals_.end() && hole->end <= rest.begin) ++hole;
    for (auto next = hole; next != other.intervals_.end() && next->begin < rest.end; ++next) {
      if (next->begin > rest.begin) set.intervals_.push_back({rest.begin, next->begin});
      rest.begin = std::max(rest.begin, next->end);
    }
    if (rest.begin < rest.end) set.intervals_.push_back(rest);
  }
  return set;
}

IntervalSet IntervalSet::And(const IntervalSet& other) const { return Without(Without(other)); }

IntervalSet IntervalSet::Or(const IntervalSet& other) const {
  std::vector<Interval> all = intervals_;
  all.insert(all.end(), other.intervals_.begin(), other.intervals_.end());
  return Of(std::move(all));
}

std::int64_t IntervalSet::length() const {
  std::int64_t length = 0;
  for (const Interval& each : intervals_) length += each.end - each.begin;
  return length;
}

}  // namespace stepwell
