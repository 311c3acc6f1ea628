// MachineClocks: where on the time line of a merge lies what a machine measured: its samples have the times of its own clock,
// and go where its traces went. Stands between a MergePlan and TraceCounters. Immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace/interval_set.h"
#include "base/trace/merge_plan.h"

namespace stepwell {

class MachineClocks {
 public:
  // Clocks that lie further apart than that are read apart, so many at most.
  static constexpr std::int64_t kApartNs = std::int64_t{60} * 1'000'000'000;
  static constexpr std::size_t kApartMax = 16;

  explicit MachineClocks(const MergePlan& plan);

  // Where a time of that machine lies: shifted as its trace of that time was, or else the nearest; as it is for one that has no
  // trace among the inputs.
  std::int64_t PlaceOf(std::string_view machine, std::int64_t time_ns) const;
  // The times of the machines' own clocks to read for `windows` of the common one: all that may lie there.
  std::vector<Interval> OwnTimes(const std::vector<Interval>& windows) const;
  // False: there are more clocks than that, and what some of them measured is not read.
  bool has_all() const { return has_all_; }

 private:
  struct Placed {
    Interval window;  // by the machine's clock
    std::int64_t shift_ns = 0;
    double drift = 0;  // so much more for each nanosecond since
    std::int64_t from_ns = 0;
  };

  static std::int64_t ShiftOf(const Placed& placed, std::int64_t time_ns);
  static bool AreOneLine(const Placed& a, const Placed& b);

  static void MakeDisjoint(std::vector<Placed>& placed);
  std::int64_t ShiftAt(std::string_view machine, std::int64_t time_ns) const;

  std::map<std::string, std::vector<Placed>, std::less<>> machines_;  // each disjoint, in order
  bool has_all_ = true;
  std::vector<Interval> shifts_;  // least and greatest of those that lie close together
};

}  // namespace stepwell
