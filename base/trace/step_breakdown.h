// StepBreakdown: where the time of training steps went, by what a native profiler (Kineto's JSON) saw: the rules of
// the TensorBoard plugin for PyTorch, whose page is gone.
//
// A moment of a step belongs to the first of these classes that was busy then: kernel, memcpy, memset,
// communication, runtime (CUDA calls of the processor), data loader, processor, other. Loading that is hidden
// behind kernels is no loader time. The classes of a step add to its length.
//
// A step is a ProfilerStep#N of the profiler; without any, everything from the first to the last event of the
// processor is one. Where there is a GPU, a step ends no earlier than the last device event that a call
// within it launched, and the next begins no earlier than that. Steps at the end whose device events are missing (fewer than 80 % of the
// step before: recording stopped) are left out.
//
//   StepBreakdown breakdown;
//   breakdown.TakeEvent(parser.event());  // each of a trace, in any order
//   const StepReport report = breakdown.Finish();
//
// Confined to one thread. Memory: 16 to 40 bytes for each event that counts, at most `events_max` of them, while they are read;
// as it finishes a device's events once more as intervals, twice, and in a table by what launched them. Collectives, where
// they are asked for, beside that.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/trace/collective_calls.h"
#include "base/trace/interval_set.h"
#include "base/trace/profile_event.h"
#include "base/trace/trace_event.h"

namespace stepwell {

struct StepTimes {
  std::string name;  // "ProfilerStep#7", empty where there are none
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::array<std::int64_t, kStepClassCount> class_ns{};
  // Of kernels that compute, in a trace without any of the processor's operators, and of communication; both, where they
  // ran at once.
  std::int64_t computing_ns = 0;
  std::int64_t communicating_ns = 0;
  std::int64_t overlap_ns = 0;
  // While no device did anything, whatever the processor did. Nothing: the trace tells of no device.
  std::optional<std::int64_t> idle_ns = {};

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

struct StepReport {
  std::vector<StepTimes> steps;
  std::int64_t steps_left_out = 0;
  bool has_device = false;
  // Of all device events, from the first to the last: busy, and the whole.
  std::int64_t device_busy_ns = 0;
  std::int64_t device_span_ns = 0;
  std::int64_t events_over_bound = 0;  // not counted anywhere
  // Where they were asked for: of these steps, by their begins; those of no step are left out.
  std::vector<CollectiveCall> collectives;
  std::vector<CollectiveName> collective_names;
  std::int64_t collectives_left_out = 0;
};

// All steps as one, without a name.
StepTimes SumOf(const StepReport& report);

class StepBreakdown {
 public:
  static constexpr std::size_t kEventsMax = 20'000'000;
  static constexpr std::size_t kStepsMax = 100'000;

  struct Options {
    std::size_t events_max = kEventsMax;
    // For RankBreakdown; a report of one trace needs none.
    bool tells_collectives = false;
  };

  StepBreakdown() : StepBreakdown(Options{}) {}
  explicit StepBreakdown(Options options) : options_(options) {}

  void TakeEvent(const TraceEvent& event);
  // Once.
  StepReport Finish();

 private:
  struct Step {
    std::string name;
    Interval host;
  };
  struct Device {
    Interval at;
    std::int64_t correlation = 0;
    std::int64_t external_id = 0;
    StepClass step_class = StepClass::kKernel;
    std::int32_t collective_no = CollectiveCalls::kNoName;
  };
  struct Launch {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t correlation = 0;
  };
  // What the launches within one step started.
  struct DeviceSide {
    std::int64_t first_begin = 0;
    std::int64_t last_end = 0;
    std::int64_t count = 0;
  };

  void TakeDevice(const TraceEvent& event, Interval at, StepClass step_class);
  std::vector<Interval>& Of(StepClass step_class) {
    return busy_[static_cast<std::size_t>(step_class)];
  }
  bool HasRoom();
  std::vector<DeviceSide> DeviceSides();
  void MoveToDevice(const std::vector<DeviceSide>& sides, StepReport& report);
  // `hosts`: the steps as the processor saw them.
  void TellCollectives(const std::vector<Interval>& hosts, StepReport& report);
  // `device`: null where there is none.
  static StepTimes Break(const Step& step, const std::array<IntervalSet, kStepClassCount>& busy,
                         StepClass computes, const IntervalSet* device);

  const Options options_;
  std::vector<Step> steps_;
  std::array<std::vector<Interval>, kStepClassCount> busy_;
  std::vector<Device> devices_;
  std::vector<Launch> launches_;
  std::vector<std::int64_t> communication_ids_;          // of operators; kernels have them, too
  CollectiveCalls collectives_;                          // where they are asked for
  absl::flat_hash_set<std::int64_t> launched_in_steps_;  // correlations
  Interval host_ = {INT64_MAX, INT64_MIN};
  std::size_t event_count_ = 0;
  std::int64_t over_bound_ = 0;
};

}  // namespace stepwell
