#include "base/trace/merge_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;
constexpr double kDayNs = 24.0 * static_cast<double>(kHourNs);
// In the year 2200; sums of what lies below fit into 64 bits.
constexpr double kTimeMax = 230 * 366.0 * kDayNs;
// Further apart, clocks have nothing in common: one counts from 1970, another from its start.
constexpr double kApartMax = 30 * kDayNs;

std::string Apart(double ns) {
  const double days = ns / kDayNs;
  return days > 1000 ? absl::StrFormat("%.1f years", days / 365.25)
                     : absl::StrFormat("%.0f days", days);
}

struct Barrier {
  std::string cycle;
  std::int64_t time_ns = 0;
  std::int64_t error_ns = 0;
};
// Of each rank, in order of time.
using Barriers = std::map<std::int32_t, std::vector<Barrier>>;

Barriers FindBarriers(const std::vector<MergeInput>& inputs,
                      const std::vector<std::int32_t>& ranks) {
  Barriers barriers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TraceOrigin& origin = inputs[i].origin;
    if (!origin.sync_time_ns.has_value()) continue;
    barriers[ranks[i]].push_back({inputs[i].cycle, *origin.sync_time_ns, origin.sync_error_ns});
  }
  for (auto& [rank, of_rank] : barriers) {
    std::sort(of_rank.begin(), of_rank.end(),
              [](const Barrier& a, const Barrier& b) { return a.time_ns < b.time_ns; });
    const auto same = [](const Barrier& a, const Barrier& b) { return a.time_ns == b.time_ns; };
    of_rank.erase(std::unique(of_rank.begin(), of_rank.end(), same), of_rank.end());
  }
  return barriers;
}

// The barrier that `input` goes by, of those of its clock: its own, which another rank of its machine left a
// moment earlier or later; without one the last before its first event.
const Barrier& BarrierOf(const MergeInput& input, const std::vector<Barrier>& of_clock) {
  const auto away = [&](const Barrier& each) {
    const double apart =
        static_cast<double>(each.time_ns) - static_cast<double>(*input.origin.sync_time_ns);
    return apart < 0 ? -apart : apart;
  };
  const Barrier* found = of_clock.data();
  for (const Barrier& each : of_clock) {
    const bool is_nearer = input.origin.sync_time_ns.has_value()
                               ? away(each) < away(*found)
                               : each.time_ns <= *input.origin.first_time_ns;
    if (is_nearer) found = &each;
  }
  return *found;
}

// The lowest rank that `has` it and whose clock `rank` shares: of its machine, where machines are told.
std::int32_t ClockOf(std::int32_t rank, const std::vector<MergeInput>& inputs,
                     const MergePlan& plan, const std::function<bool(std::int32_t)>& has) {
  std::string machine;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (plan.inputs[i].rank == rank && !inputs[i].machine.empty()) machine = inputs[i].machine;
  }
  std::int32_t lowest = rank;
  for (std::size_t i = 0; i < inputs.size() && !machine.empty(); ++i) {
    const std::int32_t other = plan.inputs[i].rank;
    if (inputs[i].machine == machine && has(other)) lowest = std::min(lowest, other);
  }
  return lowest;
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

[[nodiscard]] absl::Status ShiftByBarriers(const std::vector<MergeInput>& inputs, MergePlan& plan) {
  std::vector<std::int32_t> ranks;
  for (const PlacedInput& each : plan.inputs) ranks.push_back(each.rank);
  const Barriers barriers = FindBarriers(inputs, ranks);
  if (barriers.empty()) return absl::OkStatus();
  const std::vector<Barrier>& of_base = barriers.begin()->second;
  for (const auto& [rank, of_rank] : barriers) {
    if (of_rank.size() != of_base.size()) {
      plan.notes.push_back(
          absl::StrCat("rank ", rank, " has ", of_rank.size(), " cycles, rank ",
                       barriers.begin()->first, " has ", of_base.size(),
                       ": files without ep and ba in their names are matched in order"));
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    PlacedInput& placed = plan.inputs[i];
    const auto has = [&](std::int32_t rank) { return barriers.contains(rank); };
    const auto found = barriers.find(ClockOf(placed.rank, inputs, plan, has));
    if (inputs[i].shift_ns.has_value() || found == barriers.end()) continue;
    const Barrier& own = BarrierOf(inputs[i], found->second);
    const Barrier& base = AtBase(own, found->second, of_base);
    if (__builtin_sub_overflow(base.time_ns, own.time_ns, &placed.shift_ns)) {
      return absl::InvalidArgumentError(
          absl::StrCat(placed.label, ": its clock_sync_timestamp_us is absurd"));
    }
    placed.error_ns = &own == &base ? 0 : own.error_ns + base.error_ns;
  }
  return absl::OkStatus();
}

// By what agents wrote of their exchanges with the master: the lowest rank's clock counts. What was placed already stays.
void ShiftByMaster(const std::vector<MergeInput>& inputs, MergePlan& plan) {
  // Of each rank the most certain.
  struct Known {
    std::int64_t ahead_ns = 0;
    std::int64_t error_ns = 0;
    const std::string* trial = nullptr;
  };
  std::map<std::int32_t, Known> clocks;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TraceOrigin& origin = inputs[i].origin;
    if (!origin.master_clock.is_known()) continue;
    const Known known = {origin.master_clock.ahead_ns(),
                         origin.master_clock.ErrorFrom(*origin.first_time_ns),
                         &origin.master_clock.trial()};
    const auto [found, is_new] = clocks.try_emplace(plan.inputs[i].rank, known);
    if (!is_new && known.error_ns < found->second.error_ns) found->second = known;
  }
  if (clocks.empty()) return;
  const Known& base = clocks.begin()->second;
  const auto has = [&](std::int32_t rank) { return clocks.contains(rank); };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    PlacedInput& placed = plan.inputs[i];
    if (placed.error_ns.has_value()) continue;
    const auto found = clocks.find(ClockOf(placed.rank, inputs, plan, has));
    // Another trial may have another master, with a clock of its own.
    if (found == clocks.end() || *found->second.trial != *base.trial) continue;
    const bool is_base = &found->second == &base;
    placed.shift_ns = found->second.ahead_ns - base.ahead_ns;
    placed.error_ns = is_base ? 0 : found->second.error_ns + base.error_ns;
  }
}

[[nodiscard]] absl::Status Place(const std::vector<MergeInput>& inputs, MergePlan& plan) {
  std::vector<std::string> machines;
  for (const MergeInput& input : inputs) {
    const std::optional<std::int32_t> rank =
        input.rank.has_value() ? input.rank : input.origin.rank;
    if (!rank.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          input.label,
          ": nothing tells its rank (no rank in its name, no distributedInfo): name it"));
    }
    if (!input.origin.first_time_ns.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(input.label, ": it has no event with a time"));
    }
    PlacedInput& placed = plan.inputs.emplace_back();
    placed.label = input.label;
    placed.rank = *rank;
    placed.is_native = input.origin.is_native;
    placed.base_time_ns = input.origin.base_time_ns;
    placed.process_names = input.origin.process_names;
    if (input.shift_ns.has_value()) {
      placed.shift_ns = *input.shift_ns;
      placed.error_ns = 0;
    }
    machines.push_back(input.machine);
  }
  const bool is_alike = std::all_of(machines.begin(), machines.end(),
                                    [&](const std::string& each) { return each == machines[0]; });
  const bool is_one_machine = is_alike && !machines[0].empty();
  // Files of one rank, of which one process wrote each, share its clock as well.
  const bool is_one_rank =
      is_alike && std::all_of(plan.inputs.begin(), plan.inputs.end(), [&](const PlacedInput& each) {
        return each.rank == plan.inputs[0].rank;
      });
  for (PlacedInput& placed : plan.inputs) {
    if (is_one_machine || is_one_rank) placed.error_ns = 0;
  }
  if (is_one_machine || is_one_rank) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(ShiftByBarriers(inputs, plan));
  ShiftByMaster(inputs, plan);
  return absl::OkStatus();
}

// One row of processes for what one rank's profiler wrote, unless two files say different things of one cycle.
void ChooseLanes(const std::vector<MergeInput>& inputs, MergePlan& plan) {
  std::map<std::tuple<std::int32_t, bool, std::int32_t>, std::int32_t> lanes;
  std::map<std::tuple<std::int32_t, bool, std::int64_t>, std::int32_t>
      begun;  // files that begin at one time
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    PlacedInput& placed = plan.inputs[i];
    const std::int32_t copy =
        begun[{placed.rank, placed.is_native, *inputs[i].origin.first_time_ns}]++;
    if (copy > 0) {
      plan.notes.push_back(
          absl::StrCat(placed.label, ": rank ", placed.rank,
                       " is there twice from one time on; it has rows of its own"));
    }
    const auto [lane, is_new] = lanes.try_emplace({placed.rank, placed.is_native, copy},
                                                  static_cast<std::int32_t>(lanes.size()));
    placed.lane = lane->second;
  }
}

}  // namespace

absl::StatusOr<MergePlan> PlanMerge(const std::vector<MergeInput>& inputs,
                                    MergeAlignment alignment) {
  MergePlan plan;
  if (inputs.empty()) return absl::InvalidArgumentError("no trace to merge");
  STEPWELL_RETURN_IF_ERROR(Place(inputs, plan));
  const auto start_of = [&](std::size_t i) {
    return static_cast<double>(*inputs[i].origin.first_time_ns) +
           static_cast<double>(plan.inputs[i].shift_ns);
  };
  if (start_of(0) > kTimeMax || start_of(0) < -kTimeMax) {
    return absl::InvalidArgumentError(absl::StrCat(inputs[0].label, ": its times are absurd"));
  }
  std::size_t first = 0;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (alignment == MergeAlignment::kStart && !inputs[i].shift_ns.has_value()) {
      plan.inputs[i].error_ns = std::nullopt;
      if (__builtin_sub_overflow(*inputs[0].origin.first_time_ns + plan.inputs[0].shift_ns,
                                 *inputs[i].origin.first_time_ns, &plan.inputs[i].shift_ns)) {
        return absl::InvalidArgumentError(absl::StrCat(inputs[i].label, ": its times are absurd"));
      }
    }
    const double apart = start_of(i) - start_of(0);
    if (apart > kApartMax || apart < -kApartMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          inputs[i].label, " begins ", Apart(apart < 0 ? -apart : apart),
          apart < 0 ? " before " : " after ", inputs[0].label,
          ": their clocks have nothing in common. Shift one, or align them by their starts"));
    }
    if (start_of(i) < start_of(first)) first = i;
  }
  ChooseLanes(inputs, plan);
  // Files are seldom in order of time: an hour before the first event, so that all times are positive, and a
  // double still holds them to the nanosecond.
  const std::int64_t start = *inputs[first].origin.first_time_ns + plan.inputs[first].shift_ns;
  plan.base_time_ns = start - start % kHourNs - (start < 0 ? 2 : 1) * kHourNs;
  if (start >= 0 && start < 2 * kHourNs)
    plan.base_time_ns = 0;  // counted from a start, not from 1970
  return plan;
}

}  // namespace stepwell
