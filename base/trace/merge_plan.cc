#include "base/trace/merge_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/trace/merge_clocks.h"

namespace stepwell {
namespace {

constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;
constexpr double kDayNs = 24.0 * static_cast<double>(kHourNs);
// In the year 2200; sums of what lies below fit into 64 bits.
constexpr double kTimeMax = 230 * 366.0 * kDayNs;
constexpr double kApartMax = static_cast<double>(TraceOrigin::kApartMaxNs);

std::string Apart(double ns) {
  const double days = ns / kDayNs;
  return days > 1000 ? absl::StrFormat("%.1f years", days / 365.25)
                     : absl::StrFormat("%.0f days", days);
}

[[nodiscard]] absl::Status Place(const std::vector<MergeInput>& inputs, MergePlan& plan) {
  for (const MergeInput& input : inputs) {
    const TraceOrigin& origin = input.origin;
    const std::optional<std::int32_t> rank = input.rank.has_value() ? input.rank : origin.rank;
    if (!rank.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          input.label,
          ": nothing tells its rank (no rank in its name, no distributedInfo): name it"));
    }
    if (!origin.first_time_ns.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(input.label,
                       ": it has no event with a time, in microseconds before the year 2262 (its "
                       "times may be nanoseconds)"));
    }
    PlacedInput& placed = plan.inputs.emplace_back();
    placed.label = input.label;
    placed.rank = *rank;
    placed.machine = input.machine.empty() ? origin.machine : input.machine;
    // Who says another machine than the trace does knows better.
    if (placed.machine == origin.machine) placed.boot_id = origin.boot_id;
    placed.is_native = origin.is_native;
    placed.base_time_ns = origin.base_time_ns;
    placed.process_names = origin.process_names;
    const std::int64_t first = *origin.first_time_ns;
    const bool has_window = origin.window.begin <= first && first <= origin.window.end;
    placed.window = has_window ? origin.window : Interval{first, first};
    if (input.shift_ns.has_value()) {
      placed.shift_ns = *input.shift_ns;
      placed.error_ns = 0;
    }
  }
  return PlaceClocks(inputs, plan);
}

// Whether at least half of the shorter one is a part of the other.
bool IsOfOneTime(Interval a, Interval b) {
  const std::int64_t both = std::min(a.end, b.end) - std::max(a.begin, b.begin);
  const std::int64_t shorter = std::min(a.end - a.begin, b.end - b.begin);
  return both >= 0 && both >= shorter - both;
}

// For people: a clock that runs otherwise is seen in durations, too. One line for each machine, of its fastest part.
void NoteDrifts(MergePlan& plan) {
  std::map<std::string, const PlacedInput*> fastest;
  for (const PlacedInput& each : plan.inputs) {
    if (each.drift == 0) continue;
    const PlacedInput*& found = fastest[absl::StrCat(each.boot_id, " ", each.machine)];
    if (found == nullptr || std::abs(each.drift) > std::abs(found->drift)) found = &each;
  }
  for (const auto& [machine, input] : fastest) {
    plan.notes.push_back(absl::StrFormat(
        "%s: its machine's clock %s %.3g us a second against the common one, which is taken out",
        input->label, input->drift > 0 ? "loses" : "gains", std::abs(input->drift) * 1e6));
  }
}

// One row of processes for what one rank's profiler wrote, unless several files are of one time: a run's and a capture's
// within it have the same spans, a little apart.
void ChooseLanes(MergePlan& plan) {
  // Of each rank and profiler the times that each copy has.
  std::map<std::pair<std::int32_t, bool>, std::vector<std::vector<Interval>>> all;
  std::vector<std::size_t> copy_of(plan.inputs.size());
  for (const std::size_t i : InputsInOrder(plan)) {
    const PlacedInput& placed = plan.inputs[i];
    const Interval window = PlacedWindow(placed);
    std::vector<std::vector<Interval>>& taken = all[{placed.rank, placed.is_native}];
    const auto is_free = [&](const std::vector<Interval>& copy) {
      return std::none_of(copy.begin(), copy.end(),
                          [&](const Interval& each) { return IsOfOneTime(each, window); });
    };
    const auto found = std::find_if(taken.begin(), taken.end(), is_free);
    copy_of[i] = static_cast<std::size_t>(found - taken.begin());
    if (found == taken.end()) taken.emplace_back();
    taken[copy_of[i]].push_back(window);
  }
  std::map<std::tuple<std::int32_t, bool, std::size_t>, std::int32_t> lanes;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    PlacedInput& placed = plan.inputs[i];
    if (copy_of[i] > 0) {
      plan.notes.push_back(absl::StrCat(placed.label, ": rank ", placed.rank,
                                        " is there twice at that time; it has rows of its own"));
    }
    placed.lane = lanes
                      .try_emplace({placed.rank, placed.is_native, copy_of[i]},
                                   static_cast<std::int32_t>(lanes.size()))
                      .first->second;
  }
}

}  // namespace

std::optional<std::int64_t> PlaceTime(const PlacedInput& input, std::int64_t time_ns) {
  std::int64_t placed_ns = 0;
  if (__builtin_add_overflow(time_ns, input.shift_ns, &placed_ns)) return std::nullopt;
  if (input.drift == 0) return placed_ns;
  const double since = static_cast<double>(time_ns) - static_cast<double>(input.window.begin);
  if (__builtin_add_overflow(placed_ns, std::llround(since * input.drift), &placed_ns)) {
    return std::nullopt;
  }
  return placed_ns;
}

Interval PlacedWindow(const PlacedInput& input) {
  return {PlaceTime(input, input.window.begin).value_or(input.window.begin),
          PlaceTime(input, input.window.end).value_or(input.window.end)};
}

absl::StatusOr<MergePlan> PlanMerge(const std::vector<MergeInput>& inputs,
                                    MergeAlignment alignment) {
  MergePlan plan;
  plan.alignment = alignment;
  if (inputs.empty()) return absl::InvalidArgumentError("no trace to merge");
  STEPWELL_RETURN_IF_ERROR(Place(inputs, plan));
  const auto start_of = [&](std::size_t i) {
    return static_cast<double>(*inputs[i].origin.first_time_ns) +
           static_cast<double>(plan.inputs[i].shift_ns);
  };
  if (start_of(0) > kTimeMax || start_of(0) < -kTimeMax) {
    return absl::InvalidArgumentError(absl::StrCat(inputs[0].label, ": its times are absurd"));
  }
  if (alignment == MergeAlignment::kStart) plan.inputs[0].drift = 0;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (alignment == MergeAlignment::kStart && !inputs[i].shift_ns.has_value()) {
      plan.inputs[i].error_ns = std::nullopt;
      plan.inputs[i].drift = 0;
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
  }
  NoteDrifts(plan);
  ChooseLanes(plan);
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const PlacedInput& each : plan.inputs) {
    start = std::min(start, PlacedWindow(each).begin);
  }
  // An hour before the first event, so that all times are positive, and a double still holds them to the nanosecond.
  plan.base_time_ns = start - start % kHourNs - (start < 0 ? 2 : 1) * kHourNs;
  if (start >= 0 && start < 2 * kHourNs)
    plan.base_time_ns = 0;  // counted from a start, not from 1970
  return plan;
}

}  // namespace stepwell
