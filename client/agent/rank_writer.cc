#include "client/agent/rank_writer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// Frames sealed in one visit: a writer that was left alone for long must not keep others waiting.
constexpr int kSealsPerVisit = 16;
// How long ago a trial may have ended for which the machine is sampled once more: an agent that was
// started for it is there by then.
constexpr std::uint64_t kJustNowNs = 5'000'000'000;

// The monotonic clock of an earlier boot is known by the recorder's own pair alone.
ClockAnchor AnchorOf(const WriterIdentity& who) {
  return {who.opened_time_us, who.opened_monotonic_ns};
}

// Its times are of the kernel on which it ran, which may be an earlier boot's.
SpanTrace::Source SourceOf(const WriterIdentity& who, const AgentFace& face) {
  return {.machine = face.agent_id, .boot_id = who.boot_id.empty() ? face.machine : who.boot_id};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankWriter>> RankWriter::Open(FileDescriptor directory,
                                                             WriterIdentity identity,
                                                             const ServeContext& context) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor again,
                            OpenDirectoryAt(directory.get(), ".", WhenAbsent::kFail));
  RingFolder folder = RingFolder::Open(identity.rings, identity.writer, again.get());
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<ServedWriter> served,
                            ServedWriter::Open(std::move(directory), std::move(identity), context));
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<RecordedWriter> recorded,
                            RecordedWriter::Open(std::move(again), served->recovered(),
                                                 std::move(folder), context.rings));
  return std::unique_ptr<RankWriter>(
      new RankWriter(std::move(served), std::move(recorded), context));
}

RankWriter::RankWriter(std::unique_ptr<ServedWriter> served,
                       std::unique_ptr<RecordedWriter> recorded, const ServeContext& context)
    : served_(std::move(served)),
      recorded_(std::move(recorded)),
      clock_(context.clock),
      clock_offset_(context.sender.clock_offset()),
      trace_(served_->identity().tracing.directory.empty() || !context.may_record_traces
                 ? nullptr
                 : std::make_unique<RankTrace>(
                       served_->identity(), SourceOf(served_->identity(), context.face),
                       RankTrace::Notes{context.note_recording, context.leave_trace})),
      may_record_traces_(context.may_record_traces),
      may_capture_(context.may_capture),
      samples_(served_->catalog(), served_->builder()),
      note_epochs_(context.note_epochs),
      capture_(
          served_->identity(), context.clock, context.sender.clock_offset(),
          {.teller = [this]() -> RankCapture::Tell {
             return [link = served_->link()](pb::CaptureReport report) {
               link->Report(std::move(report));
             };
           },
           .hand_over = [this, keep = context.keep_captured](
                            CapturedTrace trace) { keep(served_->identity(), std::move(trace)); },
           .ask_native =
               [this](std::uint32_t request, std::int32_t first_batch, std::int32_t step_count) {
                 recorded_->StoreCapture(request, first_batch, step_count);
               }},
          context.capture_room, SourceOf(served_->identity(), context.face)),
      process_(served_->catalog(), served_->builder(), context.clock, context.processes,
               context.frame_interval),
      same_boot_(served_->identity().boot_id.empty() ||
                 served_->identity().boot_id == context.face.machine),
      anchors_(context.clock,
               same_boot_ ? std::nullopt : std::optional(AnchorOf(served_->identity()))) {
  if (trace_ == nullptr) return;
  samples_.SetTrace(trace_.get());
  process_.SetTap([this](const SensedSeries& series, std::int64_t time_us, double value) {
    trace_->AddSystemMetric(series.name, series.unit, TraceTimeNs(time_us), value);
  });
}

void RankWriter::Visit(const SensorSelection* selection) {
  was_selected_ = selection != nullptr;
  if (!served_->close_requested()) {
    if (const auto anchor = anchors_.TakeDue()) samples_.SetAnchor(*anchor);
    const absl::Status drained = DrainAndSeal(selection);
    if (may_record_traces_ && samples_.TakeEpochNews())
      note_epochs_(served_->identity().writer, samples_.epochs());
    if (!drained.ok() && clock_.Monotonic() - trouble_logged_ > absl::Minutes(1)) {
      trouble_logged_ = clock_.Monotonic();
      log::Warning("writer_trouble", {{"writer", served_->identity().writer.ToText()},
                                      {"why", std::string(drained.message())}});
    }
  }
  ended_just_now_ = !std::exchange(visited_, true) && HasEndedJustNow();
  served_->Tend();
  FollowDirectives();
  FollowCapture();
  TellRecorder();
}

// Looked for where it is cheapest first.
bool RankWriter::IsQuiet(const SensorSelection* selection, absl::Duration now) {
  if (served_->IsTendDue()) return false;
  if (served_->close_requested()) {
    // Who waits for it in close() is told between visits; the rest is seen by the next.
    return !live_ || served_->done() || served_->spooled() || served_->refused();
  }
  if ((selection != nullptr) != was_selected_ || capture_.is_busy()) return false;
  return visited_ && live_ && !ended_just_now_ && !sampling_ended_ && !own_sequence_ &&
         !process_.IsDue(now) && !recorded_->HasNews();
}

bool RankWriter::HasEndedJustNow() const {
  // Times of another boot, or of an unknown one, cannot be compared.
  if (live_ || !same_boot_ || served_->identity().boot_id.empty()) return false;
  const std::uint64_t now_ns = MonotonicNs();
  return last_sign_ns_ <= now_ns && now_ns - last_sign_ns_ <= kJustNowNs;
}

bool RankWriter::settled() const {
  if (served_->done() || served_->refused() || served_->spooled()) return true;
  return live_ && (served_->offline() || served_->status().all_acked);
}

bool RankWriter::closing() const {
  const bool is_awaited = (own_sequence_ && !own_told_) || recorded_->workers().awaits_ack();
  return (served_->close_requested() || is_awaited) && done_at_ == absl::InfiniteDuration();
}

void RankWriter::SettleClosing() {
  if (closing()) TellRecorder();
}

// What could not be written stays: first in the sealer, then in the rings, whose recorder counts
// what it has to drop.
absl::Status RankWriter::DrainAndSeal(const SensorSelection* selection) {
  if (served_->pending()) {
    if (absl::Status retried = served_->Retry(); !retried.ok()) {
      process_.OnNoRoom();
      return retried;
    }
    recorded_->StoreTails(served_->written());
  }
  STEPWELL_ASSIGN_OR_RETURN(const WriterStatus status, recorded_->ReadStatus());
  last_step_ = status.last_step;
  last_sign_ns_ = status.own.last_sign_ns;
  own_pid_ = status.own.pid;
  native_ = {.is_live = status.records(),
             .is_offered = status.own.offers_capture,
             .may_take = may_record_traces_,
             .answer = status.own.capture_answer};
  const bool is_own_live = status.records();
  pid_ = is_own_live ? status.pid : 0;
  live_ = is_own_live || status.workers_alive;
  seen_alive_ = seen_alive_ || live_;
  served_->NoteLife(seen_alive_);
  samples_.SetGivenUp(served_->gives_up_rings());
  if (trace_ != nullptr) trace_->SetPid(status.own.pid);
  // A child has joined before it could see the word.
  if (live_ && end_told_) STEPWELL_RETURN_IF_ERROR(TellEnd(false));
  const bool is_sampled = is_own_live && !sampling_ended_;
  if (!is_sampled) process_.End();
  if (is_sampled && selection != nullptr) SampleProcess(status, *selection);
  if (is_sampled && selection == nullptr) process_.Rest();
  const auto ending =
      is_own_live ? RecordedWriter::Ending::kMoreToCome : RecordedWriter::Ending::kFinal;
  for (int i = 0; i < kSealsPerVisit; ++i) {
    STEPWELL_RETURN_IF_ERROR(recorded_->Drain(status, ending, samples_));
    if (trace_ != nullptr) FlushTrace(RankTrace::When::kIfDue);
    const RecordedWriter::Progress progress = recorded_->TakeProgress();
    const bool is_last = !live_ && recorded_->drained() && recorded_->workers().complete();
    if (!served_->builder().empty() || progress.urgent || (is_last && progress.moved)) {
      STEPWELL_RETURN_IF_ERROR(served_->Seal(progress.checkpoint));
      recorded_->StoreTails(served_->written());
    }
    if (!recorded_->drained()) continue;
    if (is_last && !end_told_) {
      STEPWELL_RETURN_IF_ERROR(TellEnd(true));
      return DrainAndSeal(selection);  // who joined meanwhile is found now; nobody joins any more
    }
    if (is_last) {
      recorded_->workers().RemoveFinished();
      EndTrace();
      served_->Close(/*died=*/!status.own.closed && !recorded_->workers().ended_in_order());
    }
    break;
  }
  // What they closed is sealed by now: their waits end with the acks up to here.
  const std::uint64_t sealed = served_->last_sequence();
  if (status.own.closed && recorded_->own_ended() && !own_sequence_) own_sequence_ = sealed;
  recorded_->workers().NoteSealed(sealed);
  return absl::OkStatus();
}

void RankWriter::FlushTrace(RankTrace::When clock) {
  if (same_boot_) trace_->NoteClock(clock_offset_, clock_, samples_.trace_anchor(), clock);
  trace_->Flush(recorded_->drained());
}

// Of the wall clock now: a trace's times go by what it was at first, however it is steered meanwhile.
std::int64_t RankWriter::TraceTimeNs(std::int64_t wall_time_us) const {
  const ClockAnchor& anchor = samples_.trace_anchor();
  if (anchor.monotonic_ns == 0) return wall_time_us * 1000;
  const std::int64_t now_ns = anchor.ToUnixNs(MonotonicNs());
  return wall_time_us * 1000 + (now_ns - absl::ToUnixNanos(clock_.Now()));
}

// All that was recorded is in it.
void RankWriter::EndTrace() {
  if (trace_ == nullptr || std::exchange(is_trace_ended_, true)) return;
  FlushTrace(RankTrace::When::kNow);
  trace_->Finish();
}

absl::Status RankWriter::TellEnd(bool ended) {
  STEPWELL_RETURN_IF_ERROR(recorded_->StoreEnded(ended));
  end_told_ = ended;
  return absl::OkStatus();
}

void RankWriter::SampleProcess(const WriterStatus& status, const SensorSelection& selection) {
  const auto profiling = served_->status().profiling;
  if (profiling && !profiling->on()) return process_.Rest();
  process_.Visit({.pid = status.pid, .batch = last_batch(), .rank = served_->identity().rank},
                 selection);
}

void RankWriter::FollowDirectives() {
  const OutboundWriter::Status status = served_->status();
  // Until the master is heard, what an earlier agent was told holds.
  if (!status.opened) return;
  const std::uint32_t control =
      status.profiling && !status.profiling->on() ? spool::kControlOff : 0;
  if (control == control_) return;
  control_ = control;
  recorded_->StoreControl(control);
}

// All that is recorded until now was drained, or the disk is in trouble.
void RankWriter::FollowCapture() {
  const OutboundWriter::Status status = served_->status();
  if (!status.capture && !capture_.is_busy()) return;
  const std::int32_t drained_batch = samples_.newest_batch();
  const std::uint64_t now_ns = MonotonicNs();
  native_.typical_step_ns = samples_.typical_step_ns();
  native_.running_ns = same_boot_ ? now_ns - std::min(now_ns, last_sign_ns_) : 0;
  capture_.Follow(
      status.capture,
      {.may_capture = may_capture_,
       .is_recording = !status.profiling || status.profiling->on(),
       .pid = own_pid_,
       .is_live = live_ && !served_->close_requested(),
       .last_batch = recorded_->drained() && drained_batch >= 0 ? drained_batch : last_batch(),
       .native = native_,
       .epochs = &samples_.epochs()});
  samples_.SetCapture(capture_.sink(), capture_.anchor());
}

void RankWriter::TellRecorder() {
  // Of those who closed while others of the writer record on.
  const std::uint64_t acked = served_->status().acked_sequence;
  const auto stored = served_->offline() ? spool::kAgentSpooled : spool::kAgentAcked;
  if (served_->done()) {
    if (done_at_ == absl::InfiniteDuration()) {
      done_at_ = clock_.Monotonic();
      log::Info("writer_done", {{"writer", served_->identity().writer.ToText()}});
    }
    recorded_->StoreAgentState(spool::kAgentAcked);
  } else if (served_->spooled()) {
    recorded_->StoreAgentState(spool::kAgentSpooled);
  } else if (!served_->status().refusal.empty()) {
    recorded_->StoreAgentState(spool::kAgentRefused);
  } else if (!own_told_) {
    own_told_ = live_ && own_sequence_ && (served_->offline() || *own_sequence_ <= acked);
    recorded_->StoreAgentState(own_told_ ? stored : spool::kAgentServing);
  }
  recorded_->workers().TellStored(served_->offline() ? UINT64_MAX : acked, stored);
}

}  // namespace stepwell::agent
