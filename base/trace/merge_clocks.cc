#include "base/trace/merge_clocks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/bounded_math.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

// Between two files of one recording: it goes on.
constexpr std::int64_t kPauseNs = 1'000'000'000;

struct Barrier {
  std::string cycle;
  std::size_t clock = 0;
  std::int64_t time_ns = 0;
  std::int64_t error_ns = 0;
};
// Of each rank, in order of time.
using Barriers = std::map<std::int32_t, std::vector<Barrier>>;

Barriers FindBarriers(const std::vector<MergeInput>& inputs, const std::vector<std::size_t>& clocks,
                      const MergePlan& plan) {
  Barriers barriers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TraceOrigin& origin = inputs[i].origin;
    if (!origin.sync_time_ns.has_value()) continue;
    barriers[plan.inputs[i].rank].push_back(
        {inputs[i].cycle, clocks[i], *origin.sync_time_ns, origin.sync_error_ns});
  }
  for (auto& [rank, of_rank] : barriers) {
    std::sort(of_rank.begin(), of_rank.end(),
              [](const Barrier& a, const Barrier& b) { return a.time_ns < b.time_ns; });
    const auto same = [](const Barrier& a, const Barrier& b) { return a.time_ns == b.time_ns; };
    of_rank.erase(std::unique(of_rank.begin(), of_rank.end(), same), of_rank.end());
  }
  return barriers;
}

// The barrier that `input` goes by, of those of its clock, of which there is one: its own, which another rank of its machine
// left a moment earlier or later; without one the last before its first event.
const Barrier& BarrierOf(const MergeInput& input, std::size_t clock,
                         const std::vector<Barrier>& of_rank) {
  const auto away = [&](const Barrier& each) {
    const double apart =
        static_cast<double>(each.time_ns) - static_cast<double>(*input.origin.sync_time_ns);
    return apart < 0 ? -apart : apart;
  };
  const Barrier* found = nullptr;
  for (const Barrier& each : of_rank) {
    if (each.clock != clock) continue;
    const bool is_nearer = found == nullptr || (input.origin.sync_time_ns.has_value()
                                                    ? away(each) < away(*found)
                                                    : each.time_ns <= *input.origin.first_time_ns);
    if (is_nearer) found = &each;
  }
  return *found;
}

// What clocks drift apart from a moment to the furthest of a window.
std::int64_t DriftSince(std::int64_t time_ns, Interval window) {
  const auto at = static_cast<double>(time_ns);
  const double before = at - static_cast<double>(window.begin);
  const double behind = static_cast<double>(window.end) - at;
  return static_cast<std::int64_t>(std::max({before, behind, 0.0}) * kClockDriftMax);
}

// The same barrier as the base rank saw it.
const Barrier& AtBase(const Barrier& barrier, const std::vector<Barrier>& of_rank,
                      const std::vector<Barrier>& of_base) {
  if (!barrier.cycle.empty()) {
    for (const Barrier& each : of_base) {
      if (each.cycle == barrier.cycle) return each;
    }
  }
  const auto index = static_cast<std::size_t>(&barrier - of_rank.data());
  return of_base[std::min(index, of_base.size() - 1)];
}

using Names = std::set<std::string>;

// Of each input what names its clock, as far as that is known of itself: its kernel, or its machine. Of a machine's name that
// several kernels have it is the one of its rank; empty: nothing tells which.
std::vector<std::optional<std::string>> FindMachines(const MergePlan& plan) {
  std::map<std::string, Names> kernels_of;  // by machine
  std::map<std::pair<std::string, std::int32_t>, Names> kernels_of_rank;
  for (const PlacedInput& each : plan.inputs) {
    if (each.boot_id.empty()) continue;
    kernels_of[each.machine].insert(each.boot_id);
    kernels_of_rank[{each.machine, each.rank}].insert(each.boot_id);
  }
  std::vector<std::optional<std::string>> machines;
  for (const PlacedInput& each : plan.inputs) {
    if (!each.boot_id.empty()) {
      machines.emplace_back("kernel " + each.boot_id);
      continue;
    }
    if (each.machine.empty()) {
      machines.emplace_back(std::nullopt);
      continue;
    }
    const Names& of_name = kernels_of[each.machine];
    const Names& of_rank = kernels_of_rank[{each.machine, each.rank}];
    const Names& kernels = of_rank.empty() ? of_name : of_rank;
    if (kernels.empty()) {
      machines.emplace_back("machine " + each.machine);
    } else {
      machines.emplace_back(kernels.size() == 1 ? "kernel " + *kernels.begin() : "");
    }
  }
  return machines;
}

// Which clock each input has: those of one number share one.
std::vector<std::size_t> FindClocks(const MergePlan& plan) {
  const std::vector<std::optional<std::string>> machines = FindMachines(plan);
  std::map<std::int32_t, Names> machines_of;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    if (machines[i] && !machines[i]->empty()) machines_of[plan.inputs[i].rank].insert(*machines[i]);
  }
  std::map<std::string, std::size_t> known;  // by machine, or else by rank
  std::vector<std::size_t> clocks;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const std::int32_t rank = plan.inputs[i].rank;
    const Names& of_rank = machines_of[rank];
    std::string key = absl::StrCat("rank ", rank);
    if (machines[i] && !machines[i]->empty()) {
      key = *machines[i];
    } else if (machines[i] || of_rank.size() > 1) {
      // The rank went from one machine to another, or two have one name, and nothing tells on which this was.
      absl::StrAppend(&key, " input ", i);
    } else if (of_rank.size() == 1) {
      key = *of_rank.begin();
    }
    clocks.push_back(known.try_emplace(std::move(key), known.size()).first->second);
  }
  return clocks;
}

// Places what has a barrier's clock. The reference of that time line, where there is one.
[[nodiscard]] absl::StatusOr<std::optional<std::size_t>> ShiftByBarriers(
    const std::vector<MergeInput>& inputs, const std::vector<std::size_t>& clocks,
    MergePlan& plan) {
  const Barriers barriers = FindBarriers(inputs, clocks, plan);
  if (barriers.empty()) return std::nullopt;
  const auto& [base_rank, of_base] = *barriers.begin();
  for (const auto& [rank, of_rank] : barriers) {
    if (of_rank.size() != of_base.size()) {
      plan.notes.push_back(absl::StrCat(
          "rank ", rank, " has ", of_rank.size(), " cycles, rank ", base_rank, " has ",
          of_base.size(), ": files without ep and ba in their names are matched in order"));
    }
  }
  // Of each clock the lowest rank that has barriers.
  std::map<std::size_t, std::int32_t> lowest;
  std::optional<std::size_t> reference;
  for (const std::size_t i : InputsInOrder(plan)) {
    if (!inputs[i].origin.sync_time_ns.has_value()) continue;
    lowest.try_emplace(clocks[i], plan.inputs[i].rank);
    if (!reference) reference = clocks[i];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    PlacedInput& placed = plan.inputs[i];
    const auto found = lowest.find(clocks[i]);
    if (inputs[i].shift_ns.has_value() || found == lowest.end()) continue;
    const std::vector<Barrier>& of_rank = barriers.at(found->second);
    const Barrier& own = BarrierOf(inputs[i], clocks[i], of_rank);
    const Barrier& base = AtBase(own, of_rank, of_base);
    if (__builtin_sub_overflow(base.time_ns, own.time_ns, &placed.shift_ns)) {
      return absl::InvalidArgumentError(
          absl::StrCat(placed.label, ": its clock_sync_timestamp_us is absurd"));
    }
    if (clocks[i] == *reference) {
      placed.error_ns = 0;
    } else if (base.clock == *reference) {
      placed.error_ns = own.error_ns + base.error_ns + DriftSince(own.time_ns, placed.window);
    }  // else the base went to another machine, and what lies there has no barrier with the reference
  }
  return reference;
}

// What brings times to the reference's: so much at the begin of a window, and as much more for each nanosecond since.
struct Shift {
  std::int64_t ns = 0;
  double drift = 0;
  std::int64_t error_ns = 0;
};

// Of times of `window`, which are `clock`'s. A time and what the clock is behind the master make the master's time; so do
// the reference's time, which is looked for, and what that is behind.
Shift ShiftBetween(const MasterClock& clock, const MasterClock& reference, Interval window) {
  const MasterClock::Bounds all = clock.Within(window);
  const MasterClock::Bounds about = reference.Within(window);
  // The reference is asked for the same moments, by its own time.
  const std::int64_t ns = all.ahead_ns() - about.ahead_ns();
  const std::int64_t error_ns =
      all.error_ns() + about.error_ns() +
      static_cast<std::int64_t>(std::abs(static_cast<double>(ns)) * kClockDriftMax) + 1;
  const Interval there = {BoundedSum(window.begin, ns - error_ns),
                          BoundedSum(window.end, ns + error_ns)};
  const MasterClock::Line own = clock.Along(window);
  const MasterClock::Line other = reference.Along(there);
  const std::int64_t apart = own.ahead_ns - other.ahead_ns;
  // How far the reference's line has drifted where the begin of the window lies.
  const double since = static_cast<double>(apart) + static_cast<double>(error_ns - ns);
  const double steeper = 1 + other.drift;
  Shift shift = {.ns = apart - std::llround(since * other.drift / steeper),
                 .drift = (1 + own.drift) / steeper - 1,
                 .error_ns = own.error_ns + other.error_ns};
  if (own.drift != 0 || other.drift != 0) {
    const double most = static_cast<double>(shift.error_ns) / (1 - std::abs(other.drift));
    shift.error_ns = static_cast<std::int64_t>(std::ceil(most)) + 2;
  }
  return shift;
}

// What was recorded without a pause is shifted as one: a moment of it has one place, whichever rank's file it is in.
std::vector<std::vector<std::size_t>> WithoutPause(std::vector<std::size_t> of_clock,
                                                   const MergePlan& plan) {
  std::sort(of_clock.begin(), of_clock.end(), [&](std::size_t a, std::size_t b) {
    return plan.inputs[a].window.begin < plan.inputs[b].window.begin;
  });
  std::vector<std::vector<std::size_t>> parts;
  std::int64_t end_ns = 0;
  for (const std::size_t i : of_clock) {
    const Interval window = plan.inputs[i].window;
    if (parts.empty() || window.begin > BoundedSum(end_ns, kPauseNs)) parts.emplace_back();
    end_ns = parts.back().empty() ? window.end : std::max(end_ns, window.end);
    parts.back().push_back(i);
  }
  return parts;
}

// By what agents wrote of their exchanges with the master. What was placed already stays.
void ShiftByMaster(const std::vector<MergeInput>& inputs, const std::vector<std::size_t>& clocks,
                   std::optional<std::size_t> reference, MergePlan& plan) {
  std::map<std::size_t, std::vector<const MasterClock*>> told;
  std::string trial;
  std::optional<std::size_t> first;
  for (const std::size_t i : InputsInOrder(plan)) {
    const MasterClock& clock = inputs[i].origin.master_clock;
    if (!clock.is_known()) continue;
    if (!first) trial = clock.trial();
    if (!first) first = clocks[i];
    // Another trial may have another master, with a clock of its own.
    if (clock.trial() == trial) told[clocks[i]].push_back(&clock);
  }
  if (!first) return;
  std::map<std::size_t, MasterClock> known;
  for (const auto& [clock, of_clock] : told) known.emplace(clock, MasterClock::Of(of_clock, trial));
  // Barriers whose clock no exchange tells have a time line of their own.
  const bool is_line_known = !reference || known.contains(*reference);
  const std::size_t base = reference && is_line_known ? *reference : *first;
  std::map<std::size_t, std::vector<std::size_t>> unplaced;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!plan.inputs[i].error_ns.has_value() && known.contains(clocks[i])) {
      unplaced[clocks[i]].push_back(i);
    }
  }
  for (const auto& [clock, of_clock] : unplaced) {
    for (const std::vector<std::size_t>& part : WithoutPause(of_clock, plan)) {
      Interval window = plan.inputs[part.front()].window;
      for (const std::size_t i : part) window.end = std::max(window.end, plan.inputs[i].window.end);
      const Shift shift =
          clock == base ? Shift() : ShiftBetween(known.at(clock), known.at(base), window);
      for (const std::size_t i : part) {
        PlacedInput& placed = plan.inputs[i];
        const double since =
            static_cast<double>(placed.window.begin) - static_cast<double>(window.begin);
        placed.shift_ns = BoundedSum(shift.ns, std::llround(since * shift.drift));
        placed.drift = shift.drift;
        if (is_line_known) placed.error_ns = shift.error_ns;
      }
    }
  }
}

// Of a clock that was set while some of its files were written: these go on along the line that they began with, what began
// later, and what asks the wall clock each time, along others. By as much they may lie apart.
void AddSetClocks(const std::vector<MergeInput>& inputs, const std::vector<std::size_t>& clocks,
                  MergePlan& plan) {
  std::map<std::size_t, Interval> ahead;
  std::map<std::size_t, std::size_t> count;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Interval own = inputs[i].origin.wall_ahead;
    Interval& of_clock = ahead[clocks[i]];
    of_clock = {std::min(of_clock.begin, own.begin), std::max(of_clock.end, own.end)};
    ++count[clocks[i]];
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Interval of_clock = ahead[clocks[i]];
    const std::int64_t apart = BoundedSum(of_clock.end, -of_clock.begin);
    if (apart == 0 || count[clocks[i]] == 1 || inputs[i].shift_ns.has_value()) continue;
    PlacedInput& placed = plan.inputs[i];
    if (placed.error_ns.has_value()) placed.error_ns = BoundedSum(*placed.error_ns, apart);
    if (inputs[i].origin.wall_ahead == Interval()) continue;
    plan.notes.push_back(absl::StrFormat(
        "%s: its machine's clock was set by %.3f s meanwhile; other files of that machine may lie "
        "off by as much",
        placed.label, static_cast<double>(apart) * 1e-9));
  }
}

}  // namespace

std::vector<std::size_t> InputsInOrder(const MergePlan& plan) {
  std::vector<std::size_t> order(plan.inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const PlacedInput &left = plan.inputs[a], &right = plan.inputs[b];
    return std::tie(left.rank, left.window.begin) < std::tie(right.rank, right.window.begin);
  });
  return order;
}

absl::Status PlaceClocks(const std::vector<MergeInput>& inputs, MergePlan& plan) {
  const std::vector<std::size_t> clocks = FindClocks(plan);
  for (std::size_t i = 0; i < clocks.size(); ++i) plan.inputs[i].clock = clocks[i];
  const bool is_one = std::all_of(clocks.begin(), clocks.end(),
                                  [&](std::size_t each) { return each == clocks[0]; });
  if (is_one) {
    for (PlacedInput& placed : plan.inputs) placed.error_ns = 0;
    AddSetClocks(inputs, clocks, plan);
    return absl::OkStatus();
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::optional<std::size_t> reference,
                            ShiftByBarriers(inputs, clocks, plan));
  ShiftByMaster(inputs, clocks, reference, plan);
  AddSetClocks(inputs, clocks, plan);
  return absl::OkStatus();
}

}  // namespace stepwell
