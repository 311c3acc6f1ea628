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
constexpr int kEndingFlushes = 2;

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
  if (ending_ != nullptr) ending_->spans.EnterThread(thread);
}

SpanTrace& RankTrace::TraceAt(std::int64_t begin_ns) {
  const bool is_of_ending = ending_ != nullptr && (begin_ns < ending_end_ns_ || !has_begun_);
  return is_of_ending ? ending_->spans : cycle_->spans;
}

void RankTrace::NoteBegin(std::int64_t begin_ns, std::int32_t batch) {
  // A worker counts its steps by itself.
  const bool is_of_step = batch >= 0 && thread_ && thread_->worker < 0;
  if (has_begun_ || !is_of_step || begin_ns < ending_end_ns_) return;
  has_begun_ = true;
  clock_due_ = -absl::InfiniteDuration();
}

void RankTrace::AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                        std::int32_t batch) {
  NoteBegin(begin_ns, batch);
  TraceAt(begin_ns).AddSpan(name, begin_ns, end_ns, batch);
}

void RankTrace::AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) {
  // A worker counts its steps by itself: they name no file.
  if (thread_ && thread_->worker >= 0) return AddSpan("step", begin_ns, end_ns, batch);
  NoteBegin(begin_ns, batch);
  TraceAt(begin_ns).AddStep(begin_ns, end_ns, batch);
  const std::int64_t steps = identity_.tracing.cycle_steps;
  if (steps > 0 && thread_ && (std::int64_t{batch} + 1) % steps == 0) EndCycle(end_ns);
}

void RankTrace::AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) {
  NoteBegin(time_ns, batch);
  TraceAt(time_ns).AddInstant(name, time_ns, batch);
}

void RankTrace::AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                         double value) {
  // An epoch is recorded as it begins, and a cycle has the one of its last step.
  const bool is_of_next = series == kEpochSeries && time_ns >= ending_end_ns_;
  (is_of_next ? cycle_->spans : TraceAt(time_ns)).AddValue(series, unit, time_ns, value);
}

void RankTrace::AddSystemMetric(const std::string& name, const std::string& unit,
                                std::int64_t time_ns, double value) {
  // Else they would wait in memory for a first span.
  if (cycle_->has_spans() || !has_begun_) TraceAt(time_ns).AddValue(name, unit, time_ns, value);
}

void RankTrace::EndCycle(std::int64_t end_ns) {
  if (ending_ != nullptr) FinishCycle(*ending_);
  const std::int64_t epoch = cycle_->spans.epoch();
  ending_ = std::exchange(cycle_, MakeCycle(epoch));
  ending_end_ns_ = end_ns;
  ending_flushes_ = 0;
  has_begun_ = false;
  cycle_->spans.EnterThread(*thread_);
  clock_due_ = -absl::InfiniteDuration();
}

void RankTrace::NoteClock(ClockOffset& offset, const Clock& clock, const ClockAnchor& anchor,
                          When when) {
  const bool is_begun = cycle_->has_spans() && !cycle_->spans.is_closed();
  if ((!is_begun && ending_ == nullptr) || anchor.monotonic_ns == 0) return;
  const absl::Duration monotonic = clock.Monotonic();
  if (when == When::kIfDue && monotonic < clock_due_) return;
  offset.NoteTraced(monotonic);
  if (const std::int64_t ahead_ns = WallAheadNs(anchor, clock); ahead_ns != 0) {
    const std::int64_t at_ns = anchor.ToUnixNs(MonotonicNs());
    if (ending_ != nullptr) ending_->spans.AddWallClock(at_ns, ahead_ns);
    if (is_begun) cycle_->spans.AddWallClock(at_ns, ahead_ns);
    clock_due_ = monotonic + kClockInterval;
  }
  const std::optional<MasterClock::Reading> reading = ReadMasterClock(anchor, offset, clock);
  if (!reading) return;
  const std::string trial = absl::StrCat(identity_.project, "/", identity_.trial);
  clock_due_ = monotonic + kClockInterval;
  if (ending_ != nullptr) ending_->spans.AddMasterClock(*reading, trial);
  if (is_begun) cycle_->spans.AddMasterClock(*reading, trial);
}

void RankTrace::Flush() {
  FlushCycle(*cycle_);
  if (ending_ == nullptr) return;
  FlushCycle(*ending_);
  if (!has_begun_ || ++ending_flushes_ < kEndingFlushes) return;
  FinishCycle(*ending_);
  ending_ = nullptr;
}

void RankTrace::FlushCycle(Cycle& cycle) const {
  if (!cycle.has_spans()) return;
  if (const absl::Status flushed = cycle.spans.Flush(); !flushed.ok()) Complain(cycle, flushed);
}

void RankTrace::Finish() {
  if (ending_ != nullptr) FinishCycle(*ending_);
  ending_ = nullptr;
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
  return cycle_->spans.held_bytes() + (ending_ == nullptr ? 0 : ending_->spans.held_bytes());
}

void RankTrace::Complain(const Cycle& cycle, const absl::Status& status) {
  log::Warning("trace_not_recorded",
               {{"directory", cycle.options.directory}, {"why", std::string(status.message())}});
}

}  // namespace stepwell::agent
