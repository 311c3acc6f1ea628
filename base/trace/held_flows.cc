#include "base/trace/held_flows.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stepwell {

bool HeldFlows::Add(const Point& point) {
  if (points_.size() >= kFlowsMax) return false;
  points_.push_back(point);
  return true;
}

std::vector<HeldFlows::Step> HeldFlows::TakeSteps() {
  std::vector<Point> points = std::exchange(points_, {});
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tuple(a.id, a.time_ns, a.is_end, a.track) <
           std::tuple(b.id, b.time_ns, b.is_end, b.track);
  });
  std::vector<Step> steps;
  steps.reserve(points.size());
  std::uint64_t number = 0;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin + 1;
    while (end < points.size() && points[end].id == points[begin].id && !points[end - 1].is_end) {
      ++end;
    }
    if (end - begin == 1) {
      ++alone_count_;
    } else {
      ++number;
      for (std::size_t i = begin; i < end; ++i) {
        const char phase = i == begin ? 's' : i + 1 == end ? 'f' : 't';
        steps.push_back({.point = points[i], .phase = phase, .number = number});
      }
    }
    begin = end;
  }
  return steps;
}

}  // namespace stepwell
