#include "base/trace/step_breakdown.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/trace/bounded_text.h"

namespace stepwell {
namespace {

// In order, without overlap: the one that `at` is in.
std::optional<std::int64_t> StepAt(const std::vector<Interval>& steps, std::int64_t at) {
  const auto behind =
      std::upper_bound(steps.begin(), steps.end(), at,
                       [](std::int64_t time, const Interval& step) { return time < step.begin; });
  if (behind == steps.begin() || at >= std::prev(behind)->end) return std::nullopt;
  return behind - steps.begin() - 1;
}

}  // namespace

bool StepBreakdown::HasRoom() {
  if (event_count_ >= options_.events_max) {
    ++over_bound_;
    return false;
  }
  ++event_count_;
  return true;
}

void StepBreakdown::TakeEvent(const TraceEvent& event) {
  if (event.phase != 'X') return;
  const ProfileCategory* category = CategoryOf(event);
  const std::optional<Interval> at = category == nullptr ? std::nullopt : ProfileTimes(event);
  if (!at.has_value() || !HasRoom()) return;
  if (category->kind == ProfileKind::kDevice) {
    TakeDevice(event, *at, category->step_class);
    return;
  }
  // A step says when, not what was done.
  if (IsProfilerStep(event.name)) {
    if (steps_.size() < kStepsMax) {
      steps_.push_back({CutText(TextOfJson(event.name).value_or("")), *at});
    } else {
      ++over_bound_;
    }
    return;
  }
  host_ = {std::min(host_.begin, at->begin), std::max(host_.end, at->end)};
  if (category->kind == ProfileKind::kRuntime) {
    Of(StepClass::kRuntime).push_back(*at);
    launches_.push_back({at->begin, at->end, CorrelationOf(event)});
  } else if (IsCommunication(event.name)) {
    Of(StepClass::kCommunication).push_back(*at);
    const std::int64_t external_id = ExternalIdOf(event);
    if (external_id != 0) communication_ids_.push_back(external_id);
    if (options_.tells_collectives) collectives_.TakeOperator(event, *at, external_id);
  } else if (IsLoader(event.name)) {
    Of(StepClass::kDataLoader).push_back(*at);
  } else {
    Of(StepClass::kProcessor).push_back(*at);
  }
}

void StepBreakdown::TakeDevice(const TraceEvent& event, Interval at, StepClass step_class) {
  Device device = {at, CorrelationOf(event), ExternalIdOf(event), step_class};
  if (step_class == StepClass::kKernel && IsCommunicationKernel(event.name)) {
    device.step_class = StepClass::kCommunication;
    if (options_.tells_collectives) device.collective_no = collectives_.NameOfKernel(event);
  }
  devices_.push_back(device);
}

std::vector<StepBreakdown::DeviceSide> StepBreakdown::DeviceSides() {
  absl::flat_hash_map<std::int64_t, DeviceSide> by_correlation;
  for (const Device& each : devices_) {
    const auto [found, is_new] =
        by_correlation.try_emplace(each.correlation, DeviceSide{each.at.begin, each.at.end, 0});
    DeviceSide& side = found->second;
    side.first_begin = std::min(side.first_begin, each.at.begin);
    side.last_end = std::max(side.last_end, each.at.end);
    ++side.count;
  }
  std::sort(launches_.begin(), launches_.end(),
            [](const Launch& a, const Launch& b) { return a.begin < b.begin; });
  std::vector<DeviceSide> sides;
  for (const Step& step : steps_) {
    DeviceSide& side = sides.emplace_back(DeviceSide{INT64_MAX, INT64_MIN, 0});
    auto launch =
        std::lower_bound(launches_.begin(), launches_.end(), step.host.begin,
                         [](const Launch& a, std::int64_t begin) { return a.begin < begin; });
    for (; launch != launches_.end() && launch->begin < step.host.end; ++launch) {
      const auto started = by_correlation.find(launch->correlation);
      if (launch->end > step.host.end || launch->correlation == 0 ||
          started == by_correlation.end())
        continue;
      side.first_begin = std::min(side.first_begin, started->second.first_begin);
      side.last_end = std::max(side.last_end, started->second.last_end);
      side.count += started->second.count;
      launched_in_steps_.insert(launch->correlation);
    }
  }
  return sides;
}

void StepBreakdown::MoveToDevice(const std::vector<DeviceSide>& sides, StepReport& report) {
  const bool has_launches = std::any_of(sides.begin(), sides.end(),
                                        [](const DeviceSide& side) { return side.count > 0; });
  if (!has_launches) return;
  // What was launched before the first step and still runs as it begins is of no step.
  std::int64_t previous_end = steps_[0].host.begin;
  for (const Device& each : devices_) {
    const bool is_before = sides[0].count > 0 && each.at.end < sides[0].first_begin;
    if (is_before && !launched_in_steps_.contains(each.correlation)) {
      previous_end = std::max(previous_end, each.at.end);
    }
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Interval& host = steps_[i].host;
    host.begin = std::max(host.begin, previous_end);
    if (sides[i].count > 0) host.end = std::max(host.end, sides[i].last_end);
    host.end = std::max(host.end, host.begin);
    previous_end = host.end;
  }
  constexpr double kWholePart = 0.8;
  std::size_t last = steps_.size() - 1;
  while (last > 0 && sides[last].count == 0) --last;
  std::size_t kept = last + 1;
  if (last > 0 && static_cast<double>(sides[last].count) <
                      kWholePart * static_cast<double>(sides[last - 1].count)) {
    kept = last;
  }
  report.steps_left_out = static_cast<std::int64_t>(steps_.size() - kept);
  steps_.resize(kept);
}

StepTimes StepBreakdown::Break(const Step& step,
                               const std::array<IntervalSet, kStepClassCount>& busy,
                               StepClass computes, const IntervalSet* device) {
  StepTimes times;
  times.name = step.name;
  times.begin_ns = step.host.begin;
  times.end_ns = step.host.end;
  IntervalSet taken;
  std::int64_t rest = times.length_ns();
  for (std::size_t i = 0; i < kStepClassCount; ++i) {
    const IntervalSet within = busy[i].Within(step.host);
    times.class_ns[i] = within.Without(taken).length();
    rest -= times.class_ns[i];
    taken = taken.Or(within);
  }
  times.class_ns[static_cast<std::size_t>(StepClass::kOther)] = rest;
  const IntervalSet computing = busy[static_cast<std::size_t>(computes)].Within(step.host);
  const IntervalSet communicating =
      busy[static_cast<std::size_t>(StepClass::kCommunication)].Within(step.host);
  times.computing_ns = computing.length();
  times.communicating_ns = communicating.length();
  times.overlap_ns = computing.And(communicating).length();
  if (device != nullptr) times.idle_ns = times.length_ns() - device->Within(step.host).length();
  return times;
}

void StepBreakdown::TellCollectives(const std::vector<Interval>& hosts, StepReport& report) {
  absl::flat_hash_map<std::int64_t, std::optional<std::int64_t>> launched_ns;
  for (const Device& each : devices_) {
    if (each.collective_no != CollectiveCalls::kNoName) launched_ns[each.correlation];
  }
  for (const Launch& each : launches_) {
    const auto found = launched_ns.find(each.correlation);
    if (each.correlation != 0 && found != launched_ns.end()) found->second = each.begin;
  }
  for (const Device& each : devices_) {
    if (each.step_class != StepClass::kCommunication) continue;
    const auto found = launched_ns.find(each.correlation);
    collectives_.TakeKernel(each.external_id, each.collective_no, each.at,
                            found == launched_ns.end() ? std::nullopt : found->second);
  }
  std::vector<Interval> moved;
  for (const Step& step : steps_) moved.push_back(step.host);
  report.collectives_left_out = collectives_.left_out_count();
  for (CollectiveCall& call : collectives_.Finish()) {
    // What waits for a device still is of the step that began it.
    const std::optional<std::int64_t> step_no =
        call.host_ns ? StepAt(hosts, *call.host_ns) : StepAt(moved, call.ranges.front().begin);
    if (!step_no) {
      ++report.collectives_left_out;
    } else if (*step_no < std::ssize(steps_)) {
      call.step_no = *step_no;
      report.collectives.push_back(std::move(call));
    }
  }
  report.collective_names = collectives_.TakeNames();
}

StepReport StepBreakdown::Finish() {
  StepReport report;
  report.has_device = !devices_.empty();
  report.events_over_bound = over_bound_;
  if (steps_.empty() && host_.begin < host_.end) steps_.push_back({"", host_});
  std::sort(steps_.begin(), steps_.end(),
            [](const Step& a, const Step& b) { return a.host.begin < b.host.begin; });
  // Each moment is of one step, the later: otherwise many that overlap would each look at all events.
  for (std::size_t i = 1; i < steps_.size(); ++i) {
    Interval& before = steps_[i - 1].host;
    before.end = std::min(before.end, steps_[i].host.begin);
  }
  std::sort(communication_ids_.begin(), communication_ids_.end());
  std::vector<Interval> all;
  for (Device& each : devices_) {
    if (each.step_class == StepClass::kKernel &&
        std::binary_search(communication_ids_.begin(), communication_ids_.end(),
                           each.external_id)) {
      each.step_class = StepClass::kCommunication;
    }
    Of(each.step_class).push_back(each.at);
    all.push_back(each.at);
  }
  const IntervalSet device = IntervalSet::Of(std::move(all));
  report.device_busy_ns = device.length();
  if (report.device_busy_ns > 0) {
    report.device_span_ns = device.intervals().back().end - device.intervals().front().begin;
  }
  if (steps_.empty()) return report;
  std::vector<Interval> hosts;
  for (const Step& step : steps_) hosts.push_back(step.host);
  MoveToDevice(DeviceSides(), report);
  if (options_.tells_collectives) TellCollectives(hosts, report);
  std::array<IntervalSet, kStepClassCount> busy;
  for (std::size_t i = 0; i < kStepClassCount; ++i) busy[i] = IntervalSet::Of(std::move(busy_[i]));
  const bool has_kernels = busy[static_cast<std::size_t>(StepClass::kKernel)].length() > 0;
  const StepClass computes = has_kernels ? StepClass::kKernel : StepClass::kProcessor;
  for (const Step& step : steps_) {
    report.steps.push_back(Break(step, busy, computes, report.has_device ? &device : nullptr));
  }
  return report;
}

StepTimes SumOf(const StepReport& report) {
  StepTimes sum;
  for (const StepTimes& step : report.steps) {
    sum.end_ns += step.length_ns();
    for (std::size_t i = 0; i < kStepClassCount; ++i) sum.class_ns[i] += step.class_ns[i];
    sum.computing_ns += step.computing_ns;
    sum.communicating_ns += step.communicating_ns;
    sum.overlap_ns += step.overlap_ns;
    if (step.idle_ns) sum.idle_ns = sum.idle_ns.value_or(0) + *step.idle_ns;
  }
  return sum;
}

}  // namespace stepwell
