#include "server/machine_clocks.h"

#include <algorithm>
#include <cmath>

#include "base/bounded_math.h"

namespace stepwell {
namespace {

std::int64_t AwayFrom(Interval window, std::int64_t time_ns) {
  if (time_ns < window.begin) return BoundedDifference(window.begin, time_ns);
  return std::max<std::int64_t>(BoundedDifference(time_ns, window.end), 0);
}

// How far from none at least.
std::int64_t LeastOf(Interval shifts) {
  if (shifts.begin <= 0 && shifts.end >= 0) return 0;
  return shifts.begin > 0 ? shifts.begin : BoundedDifference(0, shifts.end);
}

}  // namespace

MachineClocks::MachineClocks(const MergePlan& plan) {
  std::vector<Interval> shifts = {{0, 0}};
  for (const PlacedInput& input : plan.inputs) {
    if (input.machine.empty()) continue;
    const Placed placed = {input.window, input.shift_ns, input.drift, input.window.begin};
    machines_[input.machine].push_back(placed);
    const std::int64_t at_end = ShiftOf(placed, input.window.end);
    shifts.push_back({std::min(input.shift_ns, at_end), std::max(input.shift_ns, at_end)});
  }
  for (auto& [machine, placed] : machines_) MakeDisjoint(placed);
  std::sort(shifts.begin(), shifts.end(), [](Interval a, Interval b) { return a.begin < b.begin; });
  for (const Interval& shift : shifts) {
    if (shifts_.empty() || BoundedDifference(shift.begin, shifts_.back().end) > kApartNs) {
      shifts_.push_back(shift);
    }
    shifts_.back().end = std::max(shifts_.back().end, shift.end);
  }
  // Those of clocks that lie close to the common one go before others.
  std::sort(shifts_.begin(), shifts_.end(),
            [](Interval a, Interval b) { return LeastOf(a) < LeastOf(b); });
  has_all_ = shifts_.size() <= kApartMax;
  if (!has_all_) shifts_.resize(kApartMax);
}

// Of a time beyond what was placed, that of its nearer end.
std::int64_t MachineClocks::ShiftOf(const Placed& placed, std::int64_t time_ns) {
  if (placed.drift == 0) return placed.shift_ns;
  const std::int64_t end_ns = std::max(placed.window.begin, placed.window.end);
  const std::int64_t nearest_ns = std::clamp(time_ns, placed.window.begin, end_ns);
  const double since = static_cast<double>(nearest_ns) - static_cast<double>(placed.from_ns);
  return BoundedSum(placed.shift_ns, std::llround(since * placed.drift));
}

// Files of one recording are placed along one line, each to the nanosecond.
bool MachineClocks::AreOneLine(const Placed& a, const Placed& b) {
  if (a.drift != b.drift) return false;
  const double since = static_cast<double>(b.from_ns) - static_cast<double>(a.from_ns);
  const std::int64_t apart =
      BoundedDifference(BoundedSum(a.shift_ns, std::llround(since * a.drift)), b.shift_ns);
  return apart >= -1 && apart <= 1 && (a.drift != 0 || apart == 0);
}

// In order of time, each moment in one at most: what began first has it.
void MachineClocks::MakeDisjoint(std::vector<Placed>& placed) {
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.window.begin < b.window.begin;
  });
  std::size_t last = 0;
  for (std::size_t i = 1; i < placed.size(); ++i) {
    Placed next = placed[i];
    Interval& before = placed[last].window;
    if (AreOneLine(next, placed[last])) {
      before.end = std::max(before.end, next.window.end);
    } else if (next.window.end > before.end) {
      next.window.begin = std::max(next.window.begin, before.end);
      placed[++last] = next;
    }
  }
  placed.resize(last + 1);
}

std::int64_t MachineClocks::PlaceOf(std::string_view machine, std::int64_t time_ns) const {
  return BoundedSum(time_ns, ShiftAt(machine, time_ns));
}

std::int64_t MachineClocks::ShiftAt(std::string_view machine, std::int64_t time_ns) const {
  const auto found = machines_.find(machine);
  if (found == machines_.end()) return 0;
  const std::vector<Placed>& placed = found->second;
  const auto later = std::upper_bound(
      placed.begin(), placed.end(), time_ns,
      [](std::int64_t time, const Placed& each) { return time < each.window.begin; });
  if (later == placed.begin()) return ShiftOf(*later, time_ns);
  const Placed& before = *std::prev(later);
  const bool is_before =
      later == placed.end() || AwayFrom(before.window, time_ns) <= AwayFrom(later->window, time_ns);
  return ShiftOf(is_before ? before : *later, time_ns);
}

std::vector<Interval> MachineClocks::OwnTimes(const std::vector<Interval>& windows) const {
  std::vector<Interval> own;
  own.reserve(windows.size() * shifts_.size());
  for (const Interval& window : windows) {
    for (const Interval& shift : shifts_) {
      own.push_back(
          {BoundedDifference(window.begin, shift.end), BoundedDifference(window.end, shift.begin)});
    }
  }
  return own;
}

}  // namespace stepwell
