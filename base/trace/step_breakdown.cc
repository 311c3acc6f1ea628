#include "base/trace/step_breakdown.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/trace/bounded_text.h"
#include "base/trace/exact_time.h"

namespace stepwell {
namespace {

// 73 years either way: sums and differences of such times fit into 64 bits.
constexpr std::int64_t kTimeMaxNs = std::int64_t{1} << 61;

enum class Kind { kNone, kDevice, kRuntime, kOperator };

struct Category {
  std::string_view name;  // as it stands in the file, in quotes
  Kind kind;
  StepClass step_class;
};
// Kineto's names, and those of before 2022.
constexpr Category kCategories[] = {
    {"\"kernel\"", Kind::kDevice, StepClass::kKernel},
    {"\"Kernel\"", Kind::kDevice, StepClass::kKernel},
    {"\"gpu_memcpy\"", Kind::kDevice, StepClass::kMemcpy},
    {"\"Memcpy\"", Kind::kDevice, StepClass::kMemcpy},
    {"\"gpu_memset\"", Kind::kDevice, StepClass::kMemset},
    {"\"Memset\"", Kind::kDevice, StepClass::kMemset},
    {"\"cuda_runtime\"", Kind::kRuntime, StepClass::kRuntime},
    {"\"cuda_driver\"", Kind::kRuntime, StepClass::kRuntime},
    {"\"Runtime\"", Kind::kRuntime, StepClass::kRuntime},
    {"\"cpu_op\"", Kind::kOperator, StepClass::kProcessor},
    {"\"user_annotation\"", Kind::kOperator, StepClass::kProcessor},
    {"\"Operator\"", Kind::kOperator, StepClass::kProcessor},
};

const Category* CategoryOf(std::string_view name) {
  for (const Category& each : kCategories) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

bool IsStep(std::string_view name) { return name.starts_with("\"ProfilerStep#"); }
bool IsLoader(std::string_view name) {
  return name.starts_with("\"enumerate(DataLoader)#") || name.starts_with("\"enumerate(DataPipe)#");
}
bool IsCommunication(std::string_view name) {
  return name.starts_with("\"nccl:") || name.starts_with("\"gloo:");
}
bool IsCommunicationKernel(std::string_view name) { return name.starts_with("\"nccl"); }

std::int64_t IdOf(const TraceEvent& event, std::string_view name) {
  return event.args.empty() ? 0 : WholeNumber(MemberOfJson(event.args, name)).value_or(0);
}

std::optional<Interval> TimesOf(const TraceEvent& event) {
  const std::optional<std::int64_t> begin = NsOfMicros(event.time);
  const std::optional<std::int64_t> length = NsOfMicros(event.duration);
  Interval at;
  if (!begin.has_value() || !length.has_value() || *length < 0) return std::nullopt;
  at.begin = *begin;
  if (*begin > kTimeMaxNs || *begin < -kTimeMaxNs || *length > kTimeMaxNs) return std::nullopt;
  at.end = *begin + *length;
  return at;
}

}  // namespace

const char* StepClassName(StepClass step_class) {
  switch (step_class) {
    case StepClass::kKernel:
      return "kernel";
    case StepClass::kMemcpy:
      return "memcpy";
    case StepClass::kMemset:
      return "memset";
    case StepClass::kCommunication:
      return "communication";
    case StepClass::kRuntime:
      return "runtime";
    case StepClass::kDataLoader:
      return "data loader";
    case StepClass::kProcessor:
      return "processor";
    case StepClass::kOther:
      return "other";
  }
  return "other";
}

bool StepBreakdown::HasRoom() {
  if (event_count_ >= events_max_) {
    ++over_bound_;
    return false;
  }
  ++event_count_;
  return true;
}

void StepBreakdown::TakeEvent(const TraceEvent& event) {
  if (event.phase != 'X') return;
  const Category* category = CategoryOf(event.category);
  const std::optional<Interval> at = category == nullptr ? std::nullopt : TimesOf(event);
  if (!at.has_value() || !HasRoom()) return;
  if (category->kind == Kind::kDevice) {
    TakeDevice(event, *at, category->step_class);
    return;
  }
  // A step says when, not what was done.
  if (IsStep(event.name)) {
    if (steps_.size() < kStepsMax) {
      steps_.push_back({CutText(TextOfJson(event.name).value_or("")), *at});
    } else {
      ++over_bound_;
    }
    return;
  }
  host_ = {std::min(host_.begin, at->begin), std::max(host_.end, at->end)};
  if (category->kind == Kind::kRuntime) {
    Of(StepClass::kRuntime).push_back(*at);
    launches_.push_back({at->begin, at->end, IdOf(event, "correlation")});
  } else if (IsCommunication(event.name)) {
    Of(StepClass::kCommunication).push_back(*at);
    if (const std::int64_t id = IdOf(event, "External id"); id != 0) communicating_ops_.insert(id);
  } else if (IsLoader(event.name)) {
    Of(StepClass::kDataLoader).push_back(*at);
  } else {
    Of(StepClass::kProcessor).push_back(*at);
  }
}

void StepBreakdown::TakeDevice(const TraceEvent& event, Interval at, StepClass step_class) {
  Device device = {at, IdOf(event, "correlation"), IdOf(event, "External id"), step_class};
  if (step_class == StepClass::kKernel && IsCommunicationKernel(event.name)) {
    device.step_class = StepClass::kCommunication;
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
                               const std::array<IntervalSet, kStepClassCount>& busy) const {
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
  const IntervalSet computing =
      busy[static_cast<std::size_t>(StepClass::kKernel)].Within(step.host);
  const IntervalSet communicating =
      busy[static_cast<std::size_t>(StepClass::kCommunication)].Within(step.host);
  times.computing_ns = computing.length();
  times.communicating_ns = communicating.length();
  times.overlap_ns = computing.And(communicating).length();
  return times;
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
  std::vector<Interval> all;
  for (Device& each : devices_) {
    if (each.step_class == StepClass::kKernel && communicating_ops_.contains(each.external_id)) {
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
  MoveToDevice(DeviceSides(), report);
  std::array<IntervalSet, kStepClassCount> busy;
  for (std::size_t i = 0; i < kStepClassCount; ++i) busy[i] = IntervalSet::Of(std::move(busy_[i]));
  for (const Step& step : steps_) report.steps.push_back(Break(step, busy));
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
  }
  return sum;
}

}  // namespace stepwell
