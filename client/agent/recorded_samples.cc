#include "client/agent/recorded_samples.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/agent/duration_grain.h"

namespace stepwell::agent {
namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
// The name id of `step` itself; ids of the recorder count from 1.
constexpr std::uint32_t kStepName = 0;

// What a date can say with four digits of a year. Times beyond come from a broken caller, and would
// cost the chunk's healthy samples too.
constexpr std::int64_t kTimeUsMin = -62'135'596'800'000'000;
constexpr std::int64_t kTimeUsMax = 253'402'300'799'999'999;

// Of what is kept of a duration; exactly integer / divisor, as the column carries it.
double Seconds(std::uint64_t ns) {
  return static_cast<double>(KeptDurationNs(ns)) / static_cast<double>(kNanosecondsPerSecond);
}

pb::SeriesKind ToKind(spool::SeriesKind kind) {
  switch (kind) {
    case spool::SeriesKind::kNone:
    case spool::SeriesKind::kGauge:
      return pb::SERIES_KIND_GAUGE;
    case spool::SeriesKind::kCounter:
      return pb::SERIES_KIND_COUNTER;
    case spool::SeriesKind::kDuration:
      return pb::SERIES_KIND_DURATION;
  }
  return pb::SERIES_KIND_GAUGE;
}

// The steps of a thread are stamped together; a thread of a worker and one of its parent are not.
// Those of an index that is given again go on where the dead one's ended.
TickGroupKey StepGroup(std::uint32_t worker, std::uint32_t thread) {
  constexpr std::uint32_t kOfWorker = 0x80000000;
  constexpr std::uint32_t kThreadsMax = kOfWorker / spool::kWorkerCountMax;
  if (worker == spool::kNoWorker) return {TickGroupKind::kStep, thread % kOfWorker};
  return {TickGroupKind::kStep, kOfWorker | (worker * kThreadsMax + thread % kThreadsMax)};
}

// Two names that were cut to the same text share a ref: one sample per ref and tick.
void MergeRefs(std::vector<RefValue>& tick) {
  std::sort(tick.begin(), tick.end(),
            [](const RefValue& a, const RefValue& b) { return a.ref < b.ref; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < tick.size(); ++i) {
    if (tick[i].ref == tick[kept].ref) {
      tick[kept].value += tick[i].value;
    } else {
      tick[++kept] = tick[i];
    }
  }
  if (!tick.empty()) tick.resize(kept + 1);
}

}  // namespace

void RecordedSamples::EnterThread(const RecordedProcess& process, std::uint32_t thread) {
  thread_ = thread;
  worker_ = process.worker;
  names_ = &process.names;
  refs_ = &refs_by_process_[process.number];
  TellThread(0);
}

void RecordedSamples::TellThread(std::uint32_t thread_id) const {
  const bool is_own = worker_ == spool::kNoWorker;
  ForEachTap([&](SpanSink& sink, const ClockAnchor&) {
    sink.EnterThread(
        {.worker = is_own ? -1 : std::int64_t{worker_}, .index = thread_, .id = thread_id});
  });
}

void RecordedSamples::OnScope(std::uint32_t path, std::uint64_t start_ns, std::uint64_t duration_ns,
                              std::int32_t batch) {
  const NameEntry* entry = is_traced() ? names_->Find(path) : nullptr;
  if (entry == nullptr) return;
  ForEachTap([&](SpanSink& sink, const ClockAnchor& anchor) {
    const std::int64_t begin_ns = anchor.ToUnixNs(start_ns);
    sink.AddSpan(entry->name.substr(entry->name.rfind('/') + 1), begin_ns,
                 BoundedSum(begin_ns, static_cast<std::int64_t>(duration_ns)), batch);
  });
}

void RecordedSamples::OnInstant(std::uint32_t path, std::uint64_t time_ns, std::int32_t batch) {
  const NameEntry* entry = is_traced() ? names_->Find(path) : nullptr;
  if (entry == nullptr) return;
  ForEachTap([&](SpanSink& sink, const ClockAnchor& anchor) {
    sink.AddInstant(entry->name, anchor.ToUnixNs(time_ns), batch);
  });
}

void RecordedSamples::LeaveProcess(std::uint64_t number) {
  refs_by_process_.erase(number);
  refs_ = nullptr;
}

std::uint32_t RecordedSamples::RefOf(RefKind kind, std::uint32_t name) {
  const std::uint64_t owner = kind == RefKind::kAlone ? 0 : thread_;
  const std::uint64_t place = owner << 8 | static_cast<std::uint8_t>(kind);
  const auto [found, is_new] = refs_->try_emplace({place, name}, 0);
  if (is_new) found->second = MakeRef(kind, name);
  return found->second;
}

std::uint32_t RecordedSamples::MakeRef(RefKind kind, std::uint32_t name) {
  SeriesSpec series;
  const NameEntry* entry = names_->Find(name);
  if (entry != nullptr && entry->kind == spool::NameKind::kSeries) {
    series = {entry->metric_group,
              entry->name,
              entry->labels,
              entry->unit,
              ToKind(entry->series_kind),
              1};
  } else {
    series.metric_group = "timing";
    series.name = entry == nullptr ? "step" : entry->name;
    if (entry != nullptr) series.labels = entry->labels;
    if (kind == RefKind::kStepCount) {
      series.name += ".count";
      series.unit = "1";
    } else {
      series.unit = "seconds";
      series.kind = pb::SERIES_KIND_DURATION;
      series.divisor = kNanosecondsPerSecond;
    }
  }
  if (worker_ != spool::kNoWorker) series.labels["worker"] = absl::StrCat(worker_);
  const TickGroupKey group = kind == RefKind::kAlone ? TickGroupKey{TickGroupKind::kAlone, 0}
                                                     : StepGroup(worker_, thread_);
  return catalog_.Ref(group, series);
}

std::uint64_t RecordedSamples::typical_step_ns() const {
  std::array<std::uint64_t, std::tuple_size_v<decltype(steps_ns_)>> sorted = steps_ns_;
  const std::size_t count = std::min(step_count_, sorted.size());
  if (count == 0) return 0;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

void RecordedSamples::OnStep(const StepTotals& step) {
  if (is_traced()) {
    ForEachTap([&](SpanSink& sink, const ClockAnchor& anchor) {
      const std::int64_t begin_ns = anchor.ToUnixNs(step.start_ns);
      sink.AddStep(begin_ns, BoundedSum(begin_ns, static_cast<std::int64_t>(step.duration_ns)),
                   step.batch);
    });
  }
  if (worker_ == spool::kNoWorker) {
    newest_batch_ = step.batch;
    steps_ns_[step_count_++ % steps_ns_.size()] = step.duration_ns;
  }
  const std::int64_t time_us = anchor_.ToUnixUs(step.start_ns);
  if (given_up_) {
    std::uint64_t count = 1;
    for (const PathTotal& total : step.paths) count += total.count > 1 ? 2 : 1;
    return TellGivenUp(count, time_us);
  }
  tick_.clear();
  std::uint64_t refused_count = 0;
  const auto add = [&](RefKind kind, std::uint32_t name, double value) {
    const std::uint32_t ref = RefOf(kind, name);
    if (ref == 0) {
      ++refused_count;
    } else {
      tick_.push_back({ref, value});
    }
  };
  add(RefKind::kStepTotal, kStepName, Seconds(step.duration_ns));
  for (const PathTotal& total : step.paths) {
    add(RefKind::kStepTotal, total.path, Seconds(total.total_ns));
    if (total.count > 1) add(RefKind::kStepCount, total.path, static_cast<double>(total.count));
  }
  if (refused_count > 0) {
    TellLoss(pb::GAP_CAUSE_CAP, refused_count, time_us, time_us, "too many series of one writer");
  }
  if (tick_.empty()) return;
  MergeRefs(tick_);
  builder_.AddTick(catalog_.definition(tick_.front().ref).tick_group(), time_us, step.batch, tick_);
}

void RecordedSamples::AddAlone(std::uint32_t name, std::int64_t time_us, std::int32_t batch,
                               double value) {
  if (given_up_) return TellGivenUp(1, std::clamp(time_us, kTimeUsMin, kTimeUsMax));
  const std::uint32_t ref = RefOf(RefKind::kAlone, name);
  if (ref == 0) {
    TellLoss(pb::GAP_CAUSE_CAP, 1, time_us, time_us, "too many series of one writer");
  } else if (time_us < kTimeUsMin || time_us > kTimeUsMax) {
    TellLoss(pb::GAP_CAUSE_REJECTED, 1, 0, 0, "recorded with a time outside years 1 to 9999");
  } else {
    builder_.AddSample(ref, time_us, batch, value);
  }
}

void RecordedSamples::TellGivenUp(std::uint64_t count, std::int64_t time_us) {
  TellLoss(pb::GAP_CAUSE_SPOOL_LOST, count, time_us, time_us,
           "left in the rings of a process that another agent had served");
}

void RecordedSamples::OnOccurrence(std::uint32_t path, std::uint64_t start_ns,
                                   std::uint64_t duration_ns) {
  AddAlone(path, anchor_.ToUnixUs(start_ns), spool::kNoBatch, Seconds(duration_ns));
}

void RecordedSamples::OnRecord(std::uint32_t series, std::uint64_t time_ns, std::int32_t batch,
                               double value) {
  if (const NameEntry* entry = given_up_ ? nullptr : names_->Find(series); entry != nullptr) {
    if (is_traced()) TraceValue(*entry, time_ns, value);
    if (worker_ == spool::kNoWorker && entry->name == kEpochSeries) {
      // Outside of a step it is of the next one.
      const std::int64_t first_batch = batch >= 0 ? batch : std::int64_t{newest_batch_} + 1;
      has_epoch_news_ = epochs_.Note(first_batch, value) || has_epoch_news_;
    }
  }
  AddAlone(series, anchor_.ToUnixUs(time_ns), batch, value);
}

void RecordedSamples::TraceValue(const NameEntry& entry, std::uint64_t time_ns,
                                 double value) const {
  ForEachTap([&](SpanSink& sink, const ClockAnchor& anchor) {
    sink.AddValue(entry.name, entry.unit, anchor.ToUnixNs(time_ns), value);
  });
}

void RecordedSamples::OnRecordAt(std::uint32_t series, std::int64_t time_us, std::int32_t batch,
                                 double value) {
  AddAlone(series, time_us, batch, value);
}

void RecordedSamples::OnLoss(const EventLoss& loss) {
  const std::int64_t first_us = loss.first_ns == 0 ? 0 : anchor_.ToUnixUs(loss.first_ns);
  const std::int64_t last_us = loss.last_ns == 0 ? 0 : anchor_.ToUnixUs(loss.last_ns);
  if (is_traced()) {
    ForEachTap([&](SpanSink& sink, const ClockAnchor& anchor) {
      sink.AddLoss(
          static_cast<std::int64_t>(std::clamp<std::uint64_t>(loss.event_count, 1, 1U << 31)),
          loss.first_ns == 0 ? INT64_MIN : anchor.ToUnixNs(loss.first_ns),
          loss.last_ns == 0 ? INT64_MAX : anchor.ToUnixNs(loss.last_ns));
    });
  }
  switch (loss.cause) {
    case EventLoss::Cause::kRingFull:
      return TellLoss(pb::GAP_CAUSE_RING_FULL, loss.event_count, first_us, last_us,
                      "events that found their thread's ring full");
    case EventLoss::Cause::kNoRing:
      return TellLoss(pb::GAP_CAUSE_RING_FULL, loss.event_count, first_us, last_us,
                      "events of threads that could get no ring");
    case EventLoss::Cause::kNoName:
      return TellLoss(pb::GAP_CAUSE_CAP, loss.event_count, first_us, last_us,
                      "events of names that found no room");
    case EventLoss::Cause::kDamaged:
      return TellLoss(pb::GAP_CAUSE_SPOOL_CORRUPT, loss.event_count, first_us, last_us,
                      "events of a ring failed their check");
    case EventLoss::Cause::kHidden:
      return TellLoss(pb::GAP_CAUSE_SPOOL_LOST, loss.event_count, first_us, last_us,
                      "rings in a shared memory that the agent does not see");
    case EventLoss::Cause::kFramesGone:
      return TellLoss(pb::GAP_CAUSE_SPOOL_LOST, loss.event_count, first_us, last_us,
                      "events of frames that the spool has no more");
  }
}

void RecordedSamples::TellLoss(pb::GapCause cause, std::uint64_t count, std::int64_t first_us,
                               std::int64_t last_us, std::string_view reason) {
  pb::Loss loss;
  loss.set_cause(cause);
  loss.set_sample_count(count);
  loss.set_first_time_us(first_us);
  loss.set_last_time_us(last_us);
  loss.set_reason(std::string(reason));
  builder_.AddLoss(loss);
}

}  // namespace stepwell::agent
