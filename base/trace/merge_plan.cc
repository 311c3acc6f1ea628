#include "base/trace/merge_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/trace/bounded_notes.h"
#include "base/trace/merge_clocks.h"

namespace stepwell {
namespace {

constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;
constexpr double kDayNs = 24.0 * static_cast<double>(kHourNs);
// In the year 2200; sums of what lies below fit into 64 bits.
constexpr double kTimeMax = 230 * 366.0 * kDayNs;
// Differences of two fit as well.
constexpr std::int64_t kBarrierMax = std::numeric_limits<std::int64_t>::max() / 2;
// So far from each other clocks are believed that nothing ties.
constexpr double kApartMax = static_cast<double>(TraceOrigin::kApartMaxNs);
// The year 2001: whatever counts from a start shows less.
constexpr double kDatedFrom = 11'323 * kDayNs;
// What is off by more is no tie: a barrier of another year, say.
constexpr std::int64_t kTieErrorMaxNs = kHourNs;

std::string Apart(double ns) {
  const double days = ns / kDayNs;
  return days > 1000 ? absl::StrFormat("%.1f years", days / 365.25)
                     : absl::StrFormat("%.0f days", days);
}

bool IsAbsurd(double time_ns) { return time_ns > kTimeMax || time_ns < -kTimeMax; }

absl::Status AbsurdTimes(const std::string& label) {
  return absl::InvalidArgumentError(absl::StrCat(label, ": its times are absurd"));
}

[[nodiscard]] absl::Status Place(const std::vector<MergeInput>& inputs, MergeAlignment alignment,
                                 MergePlan& plan) {
  BoundedNotes ranks;
  for (const MergeInput& input : inputs) {
    STEPWELL_RETURN_IF_ERROR(CheckMergeInput(input, alignment));
    const TraceOrigin& origin = input.origin;
    PlacedInput& placed = plan.inputs.emplace_back();
    placed.label = input.label;
    placed.rank = input.rank.has_value() ? *input.rank : *origin.rank;
    if (input.is_rank_of_name && origin.rank.has_value() && *origin.rank != placed.rank) {
      ranks.Add(absl::StrCat(input.label, ": its name says rank ", placed.rank,
                             ", the trace itself rank ", *origin.rank, "; it is taken as rank ",
                             placed.rank));
    }
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
  std::move(ranks).MoveTo(plan.notes, "traces have another rank in their names than they say");
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

// Each begins where the first one does, unless a person said otherwise.
[[nodiscard]] absl::Status AlignStarts(const std::vector<MergeInput>& inputs, MergePlan& plan) {
  plan.inputs[0].drift = 0;
  const std::int64_t first = *inputs[0].origin.first_time_ns;
  if (IsAbsurd(static_cast<double>(first) + static_cast<double>(plan.inputs[0].shift_ns))) {
    return AbsurdTimes(inputs[0].label);
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shift_ns.has_value()) continue;
    plan.inputs[i].error_ns = std::nullopt;
    plan.inputs[i].drift = 0;
    if (__builtin_sub_overflow(first + plan.inputs[0].shift_ns, *inputs[i].origin.first_time_ns,
                               &plan.inputs[i].shift_ns)) {
      return AbsurdTimes(inputs[i].label);
    }
  }
  return absl::OkStatus();
}

// What time a clock that was set shows; one that counts from a start never comes so far.
bool IsDated(double time_ns) { return time_ns >= kDatedFrom; }

// Of each input which others can lie on one time line with it: those of one number. Wall clocks that show about the same time
// may be believed to, as may what lies further apart where it shares a clock, or where barriers, exchanges with the master or
// a person tell how far it is off. A clock that counts from a start and one that was set never do; of two starts far apart
// nothing but their kernel tells that they are one.
std::vector<std::size_t> FindTimeLines(const std::vector<double>& starts, const MergePlan& plan) {
  std::vector<std::size_t> leads(starts.size());
  std::iota(leads.begin(), leads.end(), std::size_t{0});
  const auto line_of = [&](std::size_t i) {
    while (leads[i] != i) i = leads[i] = leads[leads[i]];
    return i;
  };
  const auto tie = [&](std::size_t a, std::size_t b) { leads[line_of(a)] = line_of(b); };
  std::vector<std::size_t> order = leads;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return starts[a] < starts[b]; });
  for (std::size_t at = 1; at < order.size(); ++at) {
    if (starts[order[at]] - starts[order[at - 1]] <= kApartMax) tie(order[at], order[at - 1]);
  }
  std::map<std::pair<bool, std::size_t>, std::size_t> of_clock;
  std::map<bool, std::size_t> of_reference;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const PlacedInput& placed = plan.inputs[i];
    const bool is_dated = IsDated(starts[i]);
    if (!is_dated && placed.boot_id.empty()) continue;
    tie(i, of_clock.try_emplace({is_dated, placed.clock}, i).first->second);
    const bool is_near = placed.error_ns.has_value() && *placed.error_ns <= kTieErrorMaxNs;
    if (is_near) tie(i, of_reference.try_emplace(is_dated, i).first->second);
  }
  for (std::size_t& lead : leads) lead = line_of(lead);
  return leads;
}

}  // namespace

absl::Status CheckMergeInput(const MergeInput& input, MergeAlignment alignment) {
  const TraceOrigin& origin = input.origin;
  if (!input.rank.has_value() && !origin.rank.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.label,
                     ": nothing tells its rank (none of 0 to 2147483647 in its name or "
                     "distributedInfo): name it (--rank, as it is merged or imported)"));
  }
  if (!origin.first_time_ns.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.label,
                     ": it has no event with a time, in microseconds before the year 2262 (its "
                     "times may be nanoseconds)"));
  }
  // Aligned by its start, or shifted by a person, it lies elsewhere.
  const bool stays = alignment == MergeAlignment::kClock && !input.shift_ns.has_value();
  if (stays && IsAbsurd(static_cast<double>(*origin.first_time_ns))) {
    return AbsurdTimes(input.label);
  }
  const std::int64_t barrier = origin.sync_time_ns.value_or(0);
  if (barrier > kBarrierMax || barrier < -kBarrierMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.label, ": its clock_sync_timestamp_us is absurd"));
  }
  return absl::OkStatus();
}

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
  STEPWELL_RETURN_IF_ERROR(Place(inputs, alignment, plan));
  if (alignment == MergeAlignment::kStart) {
    STEPWELL_RETURN_IF_ERROR(AlignStarts(inputs, plan));
  }
  std::vector<double> starts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    starts.push_back(static_cast<double>(*inputs[i].origin.first_time_ns) +
                     static_cast<double>(plan.inputs[i].shift_ns));
    if (IsAbsurd(starts[i])) return AbsurdTimes(inputs[i].label);
  }
  const std::vector<std::size_t> lines = FindTimeLines(starts, plan);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (lines[i] == lines[0]) continue;
    const double apart = starts[i] - starts[0];
    return absl::InvalidArgumentError(absl::StrCat(
        inputs[i].label, " begins ", Apart(apart < 0 ? -apart : apart),
        apart < 0 ? " before " : " after ", inputs[0].label,
        ": their clocks have nothing in common. Shift one, or align them by their starts"));
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
