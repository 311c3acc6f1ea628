#include "client/agent/outbound_writer.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "client/agent/refusal_reasons.h"

namespace stepwell::agent {
namespace {

// Well below the 20 s that the contract asks for.
constexpr absl::Duration kHeartbeatInterval = absl::Seconds(8);
// A quarter of gRPC's default receive cap.
constexpr std::size_t kDefinitionsBytesMax = 1 << 20;
// Of one capture there are three.
constexpr std::size_t kReportsMax = 8;

// "id:7" on command lines is a number given by the caller, all else a name.
void SetTrial(const std::string& trial, pb::Open& open) {
  absl::string_view text = trial;
  std::int64_t id = 0;
  if (absl::ConsumePrefix(&text, "id:") && absl::SimpleAtoi(text, &id)) {
    open.set_trial_id(id);
  } else {
    open.set_external_id(trial);
  }
}

}  // namespace

OutboundWriter::OutboundWriter(WriterIdentity identity, AgentFace face,
                               std::shared_ptr<Spool> spool, std::shared_ptr<TrialToken> token)
    : identity_(std::move(identity)),
      face_(std::move(face)),
      spool_(std::move(spool)),
      token_(std::move(token)),
      window_(spool_->acked().sequence),
      generation_(spool_->acked().generation),
      recovered_sequence_(spool_->last_sequence()) {
  spool_->SetReadyMark(ready_mark_);
  if (token_ != nullptr) token_->Watch(ready_mark_);
}

void OutboundWriter::AddDefinition(const pb::Definition& definition) {
  absl::MutexLock lock(&mu_);
  definitions_.push_back(definition);
  ready_mark_->Set();
}

void OutboundWriter::RequestClose(bool died) {
  absl::MutexLock lock(&mu_);
  close_wanted_ = true;
  died_ = died;
  ready_mark_->Set();
}

void OutboundWriter::Retire() {
  absl::MutexLock lock(&mu_);
  window_.Retire();
  ready_mark_->Set();
}

void OutboundWriter::Report(pb::CaptureReport report) {
  report.set_writer(spool_->writer().ToBytes());
  absl::MutexLock lock(&mu_);
  // Who asked is gone with its stream.
  if (window_.state() != SendWindow::State::kOpen) return;
  reports_.push_back(std::move(report));
  if (reports_.size() > kReportsMax) reports_.pop_front();
  ready_mark_->Set();
}

bool OutboundWriter::has_place() const {
  absl::MutexLock lock(&mu_);
  return window_.has_place();
}

std::string OutboundWriter::taken_token() const {
  absl::MutexLock lock(&mu_);
  if (window_.state() != SendWindow::State::kOpen) return "";
  return shown_.text.empty() ? identity_.token : shown_.text;
}

OutboundWriter::Status OutboundWriter::status() const {
  const std::uint64_t last_sequence = spool_->last_sequence();
  absl::MutexLock lock(&mu_);
  Status status;
  status.state = window_.state();
  status.retired = window_.retired();
  status.acked_sequence = window_.acked();
  status.all_acked = window_.acked() >= last_sequence;
  status.awaits_answer = window_.awaits_answer();
  status.sent_sequence = sent_sequence_;
  status.refusal = refusal_;
  status.opened = opened_;
  status.profiling = profiling_;
  status.capture = capture_;
  if (sampling_) {
    status.sampling_on = sampling_->on();
    status.shared_with = sampling_->shared_with();
    status.others_gpus = {sampling_->gpus().begin(), sampling_->gpus().end()};
  }
  return status;
}

void OutboundWriter::OnConnected() {
  absl::MutexLock lock(&mu_);
  window_.Connect();
  not_before_ = -absl::InfiniteDuration();
  echoes_until_ = -absl::InfiniteDuration();
  ready_mark_->Set();
}

void OutboundWriter::OnDisconnected() {
  absl::MutexLock lock(&mu_);
  window_.Disconnect();
  reports_.clear();
}

SendWindow::Action OutboundWriter::ActionLocked(absl::Duration now) const {
  if (now < not_before_) return {};
  const std::uint64_t sendable = spool_->sendable_sequence();
  const SendWindow::Action action =
      window_.Next(sendable, close_wanted_ && sendable >= spool_->last_sequence());
  const bool is_held_back = action.kind == SendWindow::ActionKind::kSend &&
                            action.sequence == held_sequence_ && !window_.Fits(held_bytes_);
  return is_held_back ? SendWindow::Action() : action;
}

bool OutboundWriter::awaits_answer() const {
  absl::MutexLock lock(&mu_);
  return window_.awaits_answer();
}

std::uint64_t OutboundWriter::acked_sequence() const {
  absl::MutexLock lock(&mu_);
  return window_.acked();
}

bool OutboundWriter::IsCloseMissingLocked(absl::Duration now) const {
  return now >= std::max(closes_by_, not_before_) && window_.is_closing() && !window_.closed();
}

bool OutboundWriter::HasNext(absl::Duration now) const {
  absl::MutexLock lock(&mu_);
  return HasNextLocked(now);
}

// By time alone HasNext changes at one of these and nowhere else, whatever the state.
absl::Duration OutboundWriter::DueAt(absl::Duration now) const {
  absl::MutexLock lock(&mu_);
  if (HasNextLocked(now)) return now;
  absl::Duration due = absl::InfiniteDuration();
  for (const absl::Duration at :
       {not_before_, closes_by_, echoes_until_, shows_again_at_, sent_at_ + kHeartbeatInterval}) {
    if (at > now) due = std::min(due, at);
  }
  return due;
}

bool OutboundWriter::HasNextLocked(absl::Duration now) const {
  if (IsCloseMissingLocked(now)) return true;
  if (window_.state() == SendWindow::State::kRefused) {
    return MayReopenLocked(now);
  }
  if (ActionLocked(now).kind != SendWindow::ActionKind::kNothing) return true;
  return window_.state() == SendWindow::State::kOpen &&
         (IsTokenStaleLocked(now) || definitions_sent_count_ < definitions_.size() ||
          !reports_.empty() || now - sent_at_ >= kHeartbeatInterval);
}

std::optional<pb::StreamChunksRequest> OutboundWriter::Next(absl::Duration now) {
  SendWindow::Action action;
  {
    absl::MutexLock lock(&mu_);
    if (IsCloseMissingLocked(now)) window_.OnNotOpen();
    if (window_.state() == SendWindow::State::kRefused && MayReopenLocked(now)) {
      if (now < not_before_) not_before_ = -absl::InfiniteDuration();
      window_.OnMayReopen();
    }
    action = ActionLocked(now);
    const bool is_open = window_.state() == SendWindow::State::kOpen;
    // Before what is shown ends.
    if (is_open && IsTokenStaleLocked(now)) {
      sent_at_ = now;
      pb::StreamChunksRequest message;
      message.mutable_credential()->set_writer(spool_->writer().ToBytes());
      message.mutable_credential()->set_token(ShowTokenLocked());
      return message;
    }
    if (is_open && definitions_sent_count_ < definitions_.size()) {
      sent_at_ = now;
      return DefinitionsLocked();
    }
    if (is_open && !reports_.empty()) {
      sent_at_ = now;
      pb::StreamChunksRequest message;
      *message.mutable_capture_report() = std::move(reports_.front());
      reports_.pop_front();
      return message;
    }
    if (action.kind == SendWindow::ActionKind::kNothing) {
      if (!is_open || now - sent_at_ < kHeartbeatInterval) return std::nullopt;
      sent_at_ = now;
      pb::StreamChunksRequest message;
      message.mutable_heartbeat()->set_writer(spool_->writer().ToBytes());
      message.mutable_heartbeat()->set_sent_time_us(absl::ToUnixMicros(absl::Now()));
      return message;
    }
    if (action.kind == SendWindow::ActionKind::kClose) {
      window_.OnCloseSent();
      sent_at_ = now;
      pb::StreamChunksRequest message;
      message.mutable_close()->set_writer(spool_->writer().ToBytes());
      message.mutable_close()->set_final_sequence(action.sequence);
      message.mutable_close()->set_died(died_);
      return message;
    }
  }
  return action.kind == SendWindow::ActionKind::kOpen ? NextOpen(now)
                                                      : NextItem(action.sequence, now);
}

std::optional<pb::StreamChunksRequest> OutboundWriter::NextOpen(absl::Duration now) {
  const std::uint64_t last_sequence = spool_->last_sequence();
  const AckedMark acked = spool_->acked();
  pb::StreamChunksRequest message;
  pb::Open& open = *message.mutable_open();
  open.set_writer(spool_->writer().ToBytes());
  SetTrial(identity_.trial, open);
  open.set_project(identity_.project);
  open.set_attempt_key(identity_.attempt_key);
  open.set_agent_id(face_.agent_id);
  open.set_machine(identity_.boot_id.empty() ? face_.machine : identity_.boot_id);
  open.set_is_sampler(identity_.is_sampler);
  open.set_rank(identity_.rank);
  open.set_world_size(identity_.world_size);
  open.mutable_labels()->insert(identity_.labels.begin(), identity_.labels.end());
  open.set_recorder_version(identity_.recorder_version);
  open.set_agent_version(face_.version);
  open.set_last_generation(acked.generation);
  open.set_last_sequence(last_sequence);
  open.set_last_crc32c(spool_->ReadChecksum(last_sequence).value_or(0));
  open.set_acked_sequence(acked.sequence);
  open.set_sent_time_us(absl::ToUnixMicros(absl::Now()));
  absl::MutexLock lock(&mu_);
  if (ActionLocked(now).kind != SendWindow::ActionKind::kOpen) return std::nullopt;
  open.set_token(ShowTokenLocked());
  closes_by_ = absl::InfiniteDuration();
  window_.OnOpenSent();
  sent_at_ = now;
  return message;
}

bool OutboundWriter::IsTokenStaleLocked(absl::Duration now) const {
  if (token_ == nullptr) return false;
  return token_->version() != shown_.version || now >= shows_again_at_;
}

bool OutboundWriter::MayReopenLocked(absl::Duration now) const {
  return now >= not_before_ || (now >= echoes_until_ && IsTokenStaleLocked(now));
}

std::string OutboundWriter::ShowTokenLocked() {
  if (token_ != nullptr) shown_ = token_->shown();
  shows_again_at_ = absl::InfiniteDuration();
  return shown_.text.empty() ? identity_.token : shown_.text;
}

std::optional<pb::StreamChunksRequest> OutboundWriter::DefinitionsLocked() {
  pb::StreamChunksRequest message;
  pb::Definitions& out = *message.mutable_definitions();
  out.set_writer(spool_->writer().ToBytes());
  std::size_t bytes = 0;
  for (; definitions_sent_count_ < definitions_.size(); ++definitions_sent_count_) {
    const pb::Definition& definition = definitions_[definitions_sent_count_];
    bytes += definition.ByteSizeLong() + 8;
    if (bytes > kDefinitionsBytesMax && out.definitions_size() > 0) break;
    *out.add_definitions() = definition;
  }
  return message;
}

std::optional<pb::StreamChunksRequest> OutboundWriter::NextItem(std::uint64_t sequence,
                                                                absl::Duration now) {
  if (!read_ahead_ || read_ahead_sequence_ != sequence) {
    absl::StatusOr<SpoolItem> item = spool_->Read(sequence);
    if (!item.ok()) {
      absl::MutexLock lock(&mu_);
      log::Warning("spool_unreadable", {{"writer", spool_->writer().ToText()},
                                        {"why", std::string(item.status().message())}});
      not_before_ = now + kNotTakenDelay;
      return std::nullopt;
    }
    read_ahead_ = *std::move(item);
    read_ahead_sequence_ = sequence;
  }
  const Frame* frame = std::get_if<Frame>(&*read_ahead_);
  const std::int64_t bytes = frame == nullptr ? 0 : static_cast<std::int64_t>(frame->body.size());
  const std::uint64_t last =
      frame == nullptr ? std::get<GapSpan>(*read_ahead_).last_sequence : sequence;
  {
    absl::MutexLock lock(&mu_);
    const SendWindow::Action action = ActionLocked(now);
    if (action.kind != SendWindow::ActionKind::kSend || action.sequence != sequence ||
        definitions_sent_count_ < definitions_.size()) {
      return std::nullopt;
    }
    if (!window_.Fits(bytes)) {
      held_sequence_ = sequence;
      held_bytes_ = bytes;
      return std::nullopt;
    }
    window_.OnSent(sequence, last, bytes);
    sent_sequence_ = std::max(sent_sequence_, last);
    sent_at_ = now;
  }
  pb::StreamChunksRequest message;
  if (frame != nullptr) {
    pb::Chunk& chunk = *message.mutable_chunk();
    chunk.set_writer(spool_->writer().ToBytes());
    chunk.set_sequence(frame->sequence);
    chunk.set_sealed_time_us(frame->sealed_time_us);
    chunk.set_crc32c(frame->crc32c);
    chunk.set_body(std::move(std::get<Frame>(*read_ahead_).body));
  } else {
    const GapSpan& span = std::get<GapSpan>(*read_ahead_);
    pb::GapRange& gap = *message.mutable_gap();
    gap.set_writer(spool_->writer().ToBytes());
    gap.set_first_sequence(span.first_sequence);
    gap.set_last_sequence(span.last_sequence);
    gap.set_cause(span.cause);
    gap.set_sample_count(span.span.sample_count);
    gap.set_first_time_us(span.span.first_time_us);
    gap.set_last_time_us(span.span.last_time_us);
    gap.set_reason(span.reason);
  }
  read_ahead_.reset();
  return message;
}

}  // namespace stepwell::agent
