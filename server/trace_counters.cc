#include "server/trace_counters.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/machine_clocks.h"
#include "server/trial_metrics.h"

namespace stepwell {
namespace {

constexpr std::int64_t kMarginUs = 1'000'000;
// Reading what lies between two windows costs less than asking again.
constexpr std::int64_t kJoinUs = 60'000'000;
constexpr std::size_t kRangesMax = 100;

// Of disjoint ranges in order.
bool IsWithin(const std::vector<v1::TimeRange>& ranges, std::int64_t time_us) {
  const auto later = std::upper_bound(
      ranges.begin(), ranges.end(), time_us,
      [](std::int64_t time, const v1::TimeRange& each) { return time < each.start_time_us(); });
  return later != ranges.begin() && time_us <= std::prev(later)->end_time_us();
}

}  // namespace

std::vector<v1::TimeRange> CounterRanges(const std::vector<Interval>& windows_ns,
                                         std::size_t count_max) {
  std::vector<Interval> wide;
  for (const Interval& window : windows_ns) {
    // Counted from 1970, and not from a start.
    const std::int64_t begin_us = window.begin / 1000 - kMarginUs;
    if (begin_us > 0) wide.push_back({begin_us, window.end / 1000 + kMarginUs + kJoinUs});
  }
  std::vector<v1::TimeRange> ranges;
  const IntervalSet joined = IntervalSet::Of(std::move(wide));
  for (const Interval& each : joined.intervals()) {
    if (ranges.size() == count_max) {
      // The last one takes the rest.
      ranges.back().set_end_time_us(joined.intervals().back().end - kJoinUs);
      break;
    }
    v1::TimeRange& range = ranges.emplace_back();
    range.set_start_time_us(each.begin);
    range.set_end_time_us(each.end - kJoinUs);
  }
  return ranges;
}

MergedCounter CounterOf(const v1::Series& series) {
  MergedCounter counter{.process = "machine", .name = series.key().name(), .unit = series.unit()};
  const std::map<std::string, std::string> labels(series.key().labels().begin(),
                                                  series.key().labels().end());
  for (const auto& [name, value] : labels) {
    if (name == "agent") {
      absl::StrAppend(&counter.process, " ", value);
    } else {
      absl::StrAppend(&counter.name, " ", name, "=", value);
    }
  }
  return counter;
}

absl::StatusOr<TraceCounters> AddTraceCounters(const QueryReads& reads, const v1::TrialRef& trial,
                                               const ReadCall& call, const MergePlan& plan,
                                               MergeWriter& writer) {
  TraceCounters counters;
  if (plan.alignment == MergeAlignment::kStart && plan.inputs.size() > 1) {
    counters.note =
        "what machines measured has no place where traces are aligned by their starts: it is left"
        " out";
    return counters;
  }
  const MachineClocks clocks(plan);
  const std::vector<v1::TimeRange> common = CounterRanges(writer.windows(), kRangesMax);
  const auto say = [&](const std::string& note) {
    absl::StrAppend(&counters.note, counters.note.empty() ? "" : "; ", note);
  };
  if (!clocks.has_all()) {
    say(absl::StrCat("the machines' clocks lie at more than ", MachineClocks::kApartMax,
                     " times, more than a minute apart: what some measured is not in it"));
  }
  std::set<std::int32_t> series;
  std::int64_t read_count = 0;
  std::int64_t written_count = 0;
  absl::Status written;
  const auto take = [&](const v1::ReadSamplesResponse& samples) {
    const auto agent = samples.series().key().labels().find("agent");
    const std::string machine = agent == samples.series().key().labels().end() ? "" : agent->second;
    bool is_begun = false;
    for (int i = 0; written.ok() && i < samples.values_size(); ++i) {
      const std::int64_t time_ns = clocks.PlaceOf(machine, samples.timestamps_us(i) * 1000);
      // What others' clocks made be read.
      if (!IsWithin(common, time_ns / 1000)) continue;
      if (!std::exchange(is_begun, true)) {
        series.insert(samples.series().series_no());
        written = writer.BeginCounter(CounterOf(samples.series()));
      }
      if (written.ok()) written = writer.TakeCount(time_ns, samples.values(i));
      ++written_count;
    }
    read_count += samples.values_size();
    return written.ok() && read_count < kTraceCountsMax;
  };
  for (const v1::TimeRange& range : CounterRanges(clocks.OwnTimes(writer.windows()), kRangesMax)) {
    for (const std::string_view group : kMachineGroups) {
      v1::ReadSamplesRequest request;
      *request.mutable_trial() = trial;
      request.mutable_selector()->set_metric_group(std::string(group));
      *request.mutable_time_range() = range;
      const absl::Status read = reads.ReadSamples(request, call, take);
      STEPWELL_RETURN_IF_ERROR(written);
      counters.series_count = static_cast<std::int32_t>(series.size());
      if (read_count >= kTraceCountsMax) {
        say(absl::StrCat("of what machines measured, the first ", written_count,
                         " samples are in it: allowed to read are ", kTraceCountsMax));
        return counters;
      }
      if (absl::IsCancelled(read)) return read;
      if (!read.ok()) {
        say(absl::StrCat("what machines measured is not all in it: ", read.message()));
        return counters;
      }
    }
  }
  return counters;
}

}  // namespace stepwell
