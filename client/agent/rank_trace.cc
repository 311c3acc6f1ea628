#include "client/agent/rank_trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/epoch_log.h"
#include "client/agent/master_reading.h"

namespace stepwell::agent {
namespace {

// Spans begin before an agent sees their process, not by more than that.
constexpr std::int64_t kEarlierNs = std::int64_t{3600} * 1'000'000'000;
// Half of it is how far drifts are guessed.
constexpr absl::Duration kClockInterval = absl::Seconds(10);
// A drain is flushed, and what was recorded while it went on is in the next one.
constexpr int kEndingDrains = 2;
// Of cycles that end while nothing is drained, as of an agent that was stopped for a while.
constexpr std::size_t kEndingsMax = 16;

SpanTrace::Source SourceOf(SpanTrace::Source source, const Uuid& writer) {
  source.writer = writer.ToText();
  return source;
}

}  // namespace

RankTrace::Cycle::Cycle(const TraceFile::Options& file_options, const SpanTrace::Options& of_spans,
                        std::function<Forget(const TraceFile& file)> of_file)
    : options(file_options),
      note(std::move(of_file)),
      spans(of_spans, [this](std::string_view packet) { return Append(packet); }) {}

absl::Status RankTrace::Cycle::Append(std::string_view packet) {
  if (file == nullptr) {
    STEPWELL_ASSIGN_OR_RETURN(file, TraceFile::Create(options));
    forget = note(*file);
  }
  return file->Append(packet);
}

RankTrace::RankTrace(const WriterIdentity& identity, SpanTrace::Source source, Notes notes,
                     std::int64_t file_bytes_max)
    : identity_(identity),
      source_(SourceOf(std::move(source), identity.writer)),
      notes_(std::move(notes)),
      file_bytes_max_(file_bytes_max),
      cycle_(MakeCycle(-1)) {}

std::unique_ptr<RankTrace::Cycle> RankTrace::MakeCycle(std::int64_t epoch) const {
  return std::make_unique<Cycle>(
      TraceFile::Options{.directory = identity_.tracing.directory,
                         .rank = identity_.rank,
                         .bytes_max = file_bytes_max_,
                         .kept_max = identity_.tracing.kept_max},
      SpanTrace::Options{.rank = identity_.rank,
                         .pid = pid_,
                         .base_time_ns = identity_.opened_time_us * 1000 - kEarlierNs,
                         .epoch = epoch,
                         .source = source_},
      [this](const TraceFile& file) {
        return notes_.begin({.writer = identity_, .path = PathOf(file.name())});
      });
}

std::string RankTrace::PathOf(const std::string& name) const {
  return absl::StrCat(identity_.tracing.directory, "/", name);
}

void RankTrace::SetPid(std::int64_t pid) {
  pid_ = pid;
  cycle_->spans.SetPid(pid);
}

void RankTrace::EnterThread(const SpanThread& thread) {
  thread_ = thread;
  cycle_->spans.EnterThread(thread);
  for (const Ending& ending : endings_) ending.cycle->spans.EnterThread(thread);
}

bool RankTrace::IsUndecided(std::int64_t begin_ns) const {
  return !has_begun_ && begin_ns >= endings_.back().end_ns;
}

// Also before its step is told, which comes last.
SpanTrace& RankTrace::TraceOfStep(std::int64_t begin_ns) {
  for (const Ending& ending : endings_) {
    if (begin_ns < ending.end_ns) return ending.cycle->spans;
  }
  return cycle_->spans;
}

// Where what is of no step belongs; null where nobody knows yet, and there is room to hold it.
SpanTrace* RankTrace::TraceBeside(std::int64_t begin_ns, bool is_of_steps) {
  if (is_of_steps && IsUndecided(begin_ns)) {
    Ending& before = endings_.back();
    before.left_until_ns = std::max(before.left_until_ns, begin_ns);
    return &before.cycle->spans;
  }
  for (const Ending& ending : endings_) {
    if (begin_ns < ending.left_until_ns) return &ending.cycle->spans;
  }
  if (has_begun_) return &cycle_->spans;
  if (undecided_.is_full()) TellDecided();
  return undecided_.is_full() ? &endings_.back().cycle->spans : nullptr;
}

// The step that begins then is over: what came meanwhile is known to have been within it, or before it.
void RankTrace::BeginCycle(std::int64_t begin_ns) {
  has_begun_ = true;
  clock_due_ = -absl::InfiniteDuration();
  Ending& before = endings_.back();
  before.left_until_ns = std::max(before.end_ns, begin_ns);
  TellUndecided(before.left_until_ns);
}

// What began before that thread entered a scope outside any step did so, too. One that is left within a step says no more.
void RankTrace::TellDecided() {
  if (has_begun_ || told_until_ns_ == endings_.back().left_until_ns) return;
  told_until_ns_ = endings_.back().left_until_ns;
  undecided_.TellBefore(told_until_ns_, endings_.back().cycle->spans);
  if (thread_) EnterThread(*thread_);
}

void RankTrace::TellUndecided(std::int64_t next_from_ns) {
  if (endings_.empty()) return;
  undecided_.Tell([&](std::int64_t begin_ns) -> SpanSink& {
    return begin_ns < next_from_ns ? endings_.back().cycle->spans : cycle_->spans;
  });
  if (thread_) EnterThread(*thread_);
}

void RankTrace::AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                        std::int32_t batch) {
  if (IsOfStep(batch)) {
    TraceOfStep(begin_ns).AddSpan(name, begin_ns, end_ns, batch);
  } else if (SpanTrace* trace = TraceBeside(begin_ns, IsOfStepThread())) {
    trace->AddSpan(name, begin_ns, end_ns, batch);
  } else {
    undecided_.AddSpan(*thread_, name, begin_ns, end_ns, batch);
  }
}

void RankTrace::AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) {
  // A worker counts its steps by itself: they name no file.
  if (thread_ && thread_->worker >= 0) return AddSpan("step", begin_ns, end_ns, batch);
  if (IsUndecided(begin_ns)) BeginCycle(begin_ns);
  TraceOfStep(begin_ns).AddStep(begin_ns, end_ns, batch);
  const std::int64_t steps = identity_.tracing.cycle_steps;
  // Another thread's step of that batch ends no other cycle.
  const bool is_of_cycle = endings_.empty() || begin_ns >= endings_.back().end_ns;
  if (steps > 0 && is_of_cycle && thread_ && (std::int64_t{batch} + 1) % steps == 0)
    EndCycle(end_ns);
}

void RankTrace::AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) {
  if (IsOfStep(batch)) {
    TraceOfStep(time_ns).AddInstant(name, time_ns, batch);
  } else if (SpanTrace* trace = TraceBeside(time_ns, IsOfStepThread())) {
    trace->AddInstant(name, time_ns, batch);
  } else {
    undecided_.AddInstant(*thread_, name, time_ns, batch);
  }
}

void RankTrace::AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                         double value) {
  // An epoch is recorded as it begins, and a cycle has the one of its last step.
  SpanTrace* trace = IsUndecided(time_ns) && series == kEpochSeries
                         ? &cycle_->spans
                         : TraceBeside(time_ns, /*is_of_steps=*/false);
  if (trace != nullptr) return trace->AddValue(series, unit, time_ns, value);
  undecided_.AddValue(series, unit, time_ns, value);
}

void RankTrace::AddSystemMetric(const std::string& name, const std::string& unit,
                                std::int64_t time_ns, double value) {
  // Else they would wait in memory for a first span.
  if (cycle_->has_spans() || !endings_.empty()) AddValue(name, unit, time_ns, value);
}

// Of the process itself: a worker counts its steps on its own.
bool RankTrace::IsOfStep(std::int32_t batch) const {
  return batch >= 0 && thread_ && thread_->worker < 0;
}

// What no thread entered is nobody's, and shown nowhere.
bool RankTrace::IsOfStepThread() const { return !thread_ || thread_ == step_thread_; }

void RankTrace::EndCycle(std::int64_t end_ns) {
  const std::int64_t epoch = cycle_->spans.epoch();
  endings_.push_back({.cycle = std::exchange(cycle_, MakeCycle(epoch)),
                      .end_ns = end_ns,
                      .left_until_ns = end_ns});
  if (endings_.size() > kEndingsMax) FinishFirst();
  has_begun_ = false;
  told_until_ns_ = end_ns;
  step_thread_ = thread_;
  cycle_->spans.EnterThread(*thread_);
  clock_due_ = -absl::InfiniteDuration();
}

void RankTrace::NoteClock(ClockOffset& offset, const Clock& clock, const ClockAnchor& anchor,
                          When when) {
  const bool is_begun = cycle_->has_spans() && !cycle_->spans.is_closed();
  if ((!is_begun && endings_.empty()) || anchor.monotonic_ns == 0) return;
  const absl::Duration monotonic = clock.Monotonic();
  if (when == When::kIfDue && monotonic < clock_due_) return;
  offset.NoteTraced(monotonic);
  if (const std::int64_t ahead_ns = WallAheadNs(anchor, clock); ahead_ns != 0) {
    const std::int64_t at_ns = anchor.ToUnixNs(MonotonicNs());
    for (const Ending& each : endings_) each.cycle->spans.AddWallClock(at_ns, ahead_ns);
    if (is_begun) cycle_->spans.AddWallClock(at_ns, ahead_ns);
    clock_due_ = monotonic + kClockInterval;
  }
  const std::optional<MasterClock::Reading> reading = ReadMasterClock(anchor, offset, clock);
  if (!reading) return;
  const std::string trial = absl::StrCat(identity_.project, "/", identity_.trial);
  clock_due_ = monotonic + kClockInterval;
  for (const Ending& each : endings_) each.cycle->spans.AddMasterClock(*reading, trial);
  if (is_begun) cycle_->spans.AddMasterClock(*reading, trial);
}

void RankTrace::Flush(bool is_drained) {
  TellDecided();
  FlushCycle(*cycle_);
  for (Ending& ending : endings_) {
    FlushCycle(*ending.cycle);
    // The last may have more to come, as long as the next has not begun.
    const bool is_over = has_begun_ || &ending != &endings_.back();
    if (is_drained && is_over) ++ending.drain_count;
  }
  while (!endings_.empty() && endings_.front().drain_count >= kEndingDrains) FinishFirst();
}

void RankTrace::FinishFirst() {
  FinishCycle(*endings_.front().cycle);
  endings_.pop_front();
}

void RankTrace::FlushCycle(Cycle& cycle) const {
  if (!cycle.has_spans()) return;
  if (const absl::Status flushed = cycle.spans.Flush(); !flushed.ok()) Complain(cycle, flushed);
}

void RankTrace::Finish() {
  // No step comes any more: all that is left followed the last one.
  if (!has_begun_) TellUndecided(INT64_MAX);
  has_begun_ = true;
  while (!endings_.empty()) FinishFirst();
  FinishCycle(*cycle_);
  // Its lock says that it is written: what could not be finished is then the sender's to try again.
  cycle_->file.reset();
}

void RankTrace::FinishCycle(Cycle& cycle) const {
  FlushCycle(cycle);
  if (cycle.file != nullptr) FinishFile(cycle);
  if (const std::int64_t left_out = cycle.spans.left_out_count(); left_out > 0) {
    log::Warning("trace_left_out",
                 {{"directory", cycle.options.directory}, {"left_out", left_out}});
  }
}

void RankTrace::FinishFile(const Cycle& cycle) const {
  const SpanTrace& spans = cycle.spans;
  absl::Status left;
  const auto leave = [&](const std::string& name) {
    if (identity_.tracing.uploads) left = LeaveFile(spans, name);
    return cycle.forget == nullptr ? absl::OkStatus() : left;
  };
  const auto name =
      cycle.file->Finish({.epoch = spans.epoch(), .batch = spans.last_batch()}, leave);
  if (!name.ok()) {
    if (left.ok()) Complain(cycle, name.status());
    return;
  }
  log::Info("trace_recorded", {{"directory", cycle.options.directory},
                               {"file", *name},
                               {"spans", spans.taken_count()},
                               {"bytes", cycle.file->bytes()}});
  // Of an agent that is killed before this the next one finds no such file any more.
  if (cycle.forget != nullptr) cycle.forget();
}

absl::Status RankTrace::LeaveFile(const SpanTrace& spans, const std::string& name) const {
  const auto number = [](std::int64_t known) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(known, -1, INT32_MAX));
  };
  return notes_.leave({.writer = identity_,
                       .path = PathOf(name),
                       .epoch = number(spans.epoch()),
                       .first_batch = spans.first_batch(),
                       .last_batch = spans.last_batch()});
}

std::size_t RankTrace::held_bytes() const {
  std::size_t bytes = cycle_->spans.held_bytes() + undecided_.held_bytes();
  for (const Ending& ending : endings_) bytes += ending.cycle->spans.held_bytes();
  return bytes;
}

void RankTrace::Complain(const Cycle& cycle, const absl::Status& status) {
  log::Warning("trace_not_recorded",
               {{"directory", cycle.options.directory}, {"why", std::string(status.message())}});
}

}  // namespace stepwell::agent
