// HostileMerge: any bytes as traces of two ranks, on the way that a master takes them behind an upload: scanned, placed
// on one time line, merged in each form, broken down into steps. What is refused is refused before the first byte is
// written; what is written is bounded by what was read, and reads again as a whole trace. Header only; pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/trace/bounded_text.h"
#include "base/trace/json_members.h"
#include "base/trace/perfetto_merger.h"
#include "base/trace/rank_breakdown.h"
#include "base/trace/step_breakdown.h"
#include "base/trace/trace_event.h"
#include "base/trace/trace_reading.h"

namespace stepwell::testing {

using HostileTraces = std::array<std::string_view, 2>;

inline TraceSource SourceOfBytes(std::string_view bytes) {
  return [bytes](const TakeBytes& take) { return take(bytes); };
}

struct CollectedTrace {
  absl::StatusOr<TraceForm> form = TraceForm();
  std::vector<std::string> events;
  std::size_t event_bytes = 0;
};

inline CollectedTrace CollectTrace(std::string_view bytes) {
  CollectedTrace collected;
  collected.form = ReadTrace(SourceOfBytes(bytes), {.event =
                                                        [&](std::string_view json) {
                                                          collected.events.emplace_back(json);
                                                          collected.event_bytes += json.size();
                                                          return absl::OkStatus();
                                                        },
                                                    .member = {}});
  return collected;
}

inline void CheckTraceRefusal(const absl::Status& status) {
  STEPWELL_CHECK(absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status));
  STEPWELL_CHECK(!status.message().empty());
}

inline void CheckSteps(const StepReport& report, std::size_t event_count) {
  STEPWELL_CHECK(report.steps_left_out >= 0 && report.events_over_bound >= 0);
  STEPWELL_CHECK(report.steps.size() + static_cast<std::size_t>(report.steps_left_out) <=
                 event_count);
  STEPWELL_CHECK(report.device_busy_ns >= 0 && report.device_busy_ns <= report.device_span_ns);
  std::int64_t previous_end = std::numeric_limits<std::int64_t>::min();
  for (const StepTimes& step : report.steps) {
    STEPWELL_CHECK(step.name.size() <= kTraceTextBytesMax);
    // Of no moment twice.
    STEPWELL_CHECK(previous_end <= step.begin_ns && step.begin_ns <= step.end_ns);
    previous_end = step.end_ns;
    std::int64_t sum = 0;
    for (const std::int64_t class_ns : step.class_ns) {
      STEPWELL_CHECK(class_ns >= 0 && class_ns <= step.length_ns());
      sum += class_ns;
    }
    STEPWELL_CHECK(sum == step.length_ns());
    STEPWELL_CHECK(step.computing_ns >= 0 && step.computing_ns <= step.length_ns());
    STEPWELL_CHECK(step.communicating_ns >= 0 && step.communicating_ns <= step.length_ns());
    STEPWELL_CHECK(step.overlap_ns >= 0);
    STEPWELL_CHECK(step.overlap_ns <= std::min(step.computing_ns, step.communicating_ns));
  }
  const StepTimes total = SumOf(report);
  std::int64_t sum = 0;
  for (const std::int64_t class_ns : total.class_ns) sum += class_ns;
  STEPWELL_CHECK(sum == total.length_ns());
}

// Two ranks that did the same waited for nobody.
inline void CheckRanks(const StepReport& report) {
  RankBreakdown ranks;
  ranks.Add(0, report);
  ranks.Add(1, report);
  const RankReport both = ranks.Finish();
  STEPWELL_CHECK(both.ranks[0].steps.size() == report.steps.size());
  for (const RankRow& row : both.ranks) {
    const RankTimes& sum = row.sum;
    STEPWELL_CHECK(sum.computation_ns >= 0 && sum.overlap_ns >= 0 && sum.communication_ns >= 0);
    STEPWELL_CHECK(sum.other_ns >= 0 && sum.transfer_ns >= 0 && sum.wait_ns == 0);
    for (const auto& [name, times] : row.collectives) STEPWELL_CHECK(times.wait_ns == 0);
  }
}

// What was found valid once is walked through as it is parsed.
inline void CheckMembers(std::string_view object) {
  std::vector<std::pair<std::string_view, std::string_view>> parsed, walked;
  const bool is_object = ForEachJsonMember(
      object,
      [&](std::string_view name, std::string_view value) { parsed.emplace_back(name, value); });
  for (JsonMembers members(object); members.Next();) {
    walked.emplace_back(members.name(), members.value());
  }
  STEPWELL_CHECK(walked == (is_object ? parsed : decltype(parsed)()));
}

inline void BreakDownHostile(const std::vector<std::string>& events) {
  for (const std::size_t events_max : {StepBreakdown::kEventsMax, std::size_t{3}}) {
    StepBreakdown breakdown({.events_max = events_max, .tells_collectives = true});
    TraceEventParser parser;
    for (const std::string& json : events) {
      if (!parser.Parse(json)) continue;
      CheckMembers(parser.event().args);
      breakdown.TakeEvent(parser.event());
    }
    const StepReport report = breakdown.Finish();
    CheckSteps(report, std::min(events.size(), events_max));
    CheckRanks(report);
  }
}

// Of a merge. An event may open a process, a thread and rows, with a name for each; a counter has a name for each
// of its values, of which five bytes tell one.
inline std::size_t MergedBytesMax(std::size_t event_bytes) {
  return (std::size_t{64} << 10) + 4 * kTraceTextBytesMax * event_bytes;
}

// The events of a merge, which is whole and holds nothing that is to be passed over.
inline std::vector<std::string> ReadMerged(std::string_view merged) {
  const CollectedTrace again = CollectTrace(merged);
  STEPWELL_CHECK(again.form.ok() && !again.form->is_cut && again.form->passed_over == 0);
  TraceEventParser parser;
  for (const std::string& json : again.events) STEPWELL_CHECK(parser.Parse(json));
  return again.events;
}

// As a master adds what a machine's sampler measured meanwhile; one count of two is none, and left out.
inline void AddHostileCounter(const MergePlan& plan, MergeWriter& writer) {
  STEPWELL_CHECK(writer.windows().size() <= plan.inputs.size());
  for (const Interval& window : writer.windows()) {
    STEPWELL_CHECK(window.begin <= window.end);
    const absl::Status begun = writer.BeginCounter({"machine a", "gpu_util 0", "percent"});
    STEPWELL_CHECK(begun.ok());
    STEPWELL_CHECK(writer.TakeCount(window.begin, 1.5).ok());
    STEPWELL_CHECK(writer.TakeCount(window.end, std::numeric_limits<double>::infinity()).ok());
  }
}

struct HostileMerged {
  std::string bytes;
  MergeCounts counts;
  std::int64_t event_left_out = 0;
};
inline HostileMerged MergeOnce(const MergePlan& plan, const HostileTraces& traces, MergeForm form) {
  HostileMerged merged;
  const auto counts = MergeTraces(
      plan,
      [&](const PlacedInput& placed) { return SourceOfBytes(traces[placed.label == "b" ? 1 : 0]); },
      form,
      [&](std::string_view bytes) {
        merged.bytes += bytes;
        return absl::OkStatus();
      },
      [&](MergeWriter& writer) {
        merged.event_left_out = writer.left_out_count();
        AddHostileCounter(plan, writer);
        return absl::OkStatus();
      });
  // What could be scanned can be merged.
  STEPWELL_CHECK(counts.ok() && counts->written >= 0 && counts->left_out >= 0);
  merged.counts = *counts;
  return merged;
}

// A merge is a trace of its own: merged again it loses nothing.
inline void CheckChromeMerge(const MergePlan& plan, const HostileMerged& merged) {
  const std::vector<std::string> events = ReadMerged(merged.bytes);
  STEPWELL_CHECK(static_cast<std::int64_t>(events.size()) >= merged.counts.written);
  const auto scanned = ScanTrace(SourceOfBytes(merged.bytes));
  STEPWELL_CHECK(scanned.ok());
  const auto again = PlanMerge({{.label = "a",
                                 .origin = scanned->origin,
                                 .rank = 0,
                                 .cycle = "",
                                 .machine = "",
                                 .shift_ns = {}}},
                               MergeAlignment::kClock);
  // Times near the ends of what 64 bits hold fit behind one base and not behind another.
  if (!again.ok() || again->base_time_ns != plan.base_time_ns) return;
  STEPWELL_CHECK(
      MergeOnce(*again, {merged.bytes, merged.bytes}, MergeForm::kChrome).event_left_out == 0);
}

// With so little room that slices are written before their input ends.
inline std::string MergeInLittleRoom(const MergePlan& plan,
                                     const std::vector<std::vector<std::string>>& events) {
  std::string merged;
  PerfettoMerger merger(plan, {.is_packed = false, .held_bytes_max = 200},
                        [&](std::string_view bytes) {
                          merged += bytes;
                          return absl::OkStatus();
                        });
  STEPWELL_CHECK(merger.Begin().ok());
  for (std::size_t i = 0; i < events.size(); ++i) {
    STEPWELL_CHECK(merger.BeginInput(i).ok());
    for (const std::string& json : events[i]) STEPWELL_CHECK(merger.TakeEvent(json).ok());
  }
  STEPWELL_CHECK(merger.End().ok());
  return merged;
}

inline void CheckMerges(const MergePlan& plan, const HostileTraces& traces,
                        const std::vector<std::vector<std::string>>& events,
                        std::size_t event_bytes) {
  const HostileMerged chrome = MergeOnce(plan, traces, MergeForm::kChrome);
  const HostileMerged plain = MergeOnce(plan, traces, MergeForm::kPerfettoPlain);
  const HostileMerged packed = MergeOnce(plan, traces, MergeForm::kPerfetto);
  const std::string little = MergeInLittleRoom(plan, events);
  for (const std::string_view bytes :
       {std::string_view(chrome.bytes), std::string_view(plain.bytes),
        std::string_view(packed.bytes), std::string_view(little)}) {
    STEPWELL_CHECK(bytes.size() <= MergedBytesMax(event_bytes));
  }
  CheckChromeMerge(plan, chrome);
  STEPWELL_CHECK(ReadMerged(plain.bytes) == ReadMerged(packed.bytes));
  STEPWELL_CHECK(plain.counts.written == packed.counts.written);
  (void)ReadMerged(little);
}

inline void MergeHostileTraces(const HostileTraces& traces) {
  std::vector<MergeInput> inputs;
  std::vector<std::vector<std::string>> events;
  std::size_t event_bytes = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    CollectedTrace collected = CollectTrace(traces[i]);
    const auto scanned = ScanTrace(SourceOfBytes(traces[i]));
    STEPWELL_CHECK(scanned.ok() == collected.form.ok());
    BreakDownHostile(collected.events);
    if (!scanned.ok()) return CheckTraceRefusal(scanned.status());
    inputs.push_back({.label = i == 0 ? "a" : "b",
                      .origin = scanned->origin,
                      .rank = static_cast<std::int32_t>(i),
                      .cycle = "",
                      .machine = "",
                      .shift_ns = {}});
    event_bytes += collected.event_bytes;
    events.push_back(std::move(collected.events));
  }
  for (const MergeAlignment alignment : {MergeAlignment::kClock, MergeAlignment::kStart}) {
    const auto plan = PlanMerge(inputs, alignment);
    if (plan.ok()) {
      STEPWELL_CHECK(plan->inputs.size() == inputs.size());
      CheckMerges(*plan, traces, events, event_bytes);
    } else {
      CheckTraceRefusal(plan.status());
    }
  }
}

}  // namespace stepwell::testing
