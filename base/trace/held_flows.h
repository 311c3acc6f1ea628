// HeldFlows: the flows of a Perfetto trace, which say at each slice which ids it carries, as events of Chrome's form: s, t
// and f in the order of their times, which is known only once all are read. Stands within PerfettoSplitter. Pure;
// confined to one thread. Memory: kFlowsMax of 32 bytes, and three times that in
// TakeSteps; what comes then is refused.
//
//   if (!flows.Add({.id = 7, .time_ns = at, .track = track, .is_end = false})) ++left_out;
//   for (const HeldFlows::Step& step : flows.TakeSteps()) ...
#pragma once

#include <cstdint>
#include <vector>

namespace stepwell {

class HeldFlows {
 public:
  static constexpr std::size_t kFlowsMax = 1'000'000;

  struct Point {
    std::uint64_t id = 0;
    std::int64_t time_ns = 0;
    std::uint64_t track = 0;
    bool is_end = false;  // it says of itself that it is the last
  };
  struct Step {
    Point point = {};
    char phase = 's';
    // Of the ids of this file, from 1: an id that ends and begins again is another one.
    std::uint64_t number = 0;
  };

  bool Add(const Point& point);
  // In order; one that is alone joins nothing, and is left out and counted.
  std::vector<Step> TakeSteps();
  std::int64_t alone_count() const { return alone_count_; }

 private:
  std::vector<Point> points_;
  std::int64_t alone_count_ = 0;
};

}  // namespace stepwell
