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
// A refused writer is shown to the master again: its cause (a token, a trial) may be mended.
constexpr absl::Duration kReopenInterval = absl::Seconds(60);
constexpr absl::Duration kNotTakenDelay = absl::Seconds(1);
// Rates let ten seconds' worth come at once.
constexpr absl::Duration kRatedInterval = absl::Seconds(10);
// A quarter of gRPC's default receive cap.
constexpr std::size_t kDefinitionsBytesMax = 1 << 20;
// What stands would fill the log.
constexpr absl::Duration kLogInterval = absl::Seconds(60);
// A master has some dozens; more would be made up.
constexpr std::size_t kReasonsMax = 64;
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
      generation_(spool_->acked().generation) {}

void OutboundWriter::AddDefinition(const pb::Definition& definition) {
  absl::MutexLock lock(&mu_);
  definitions_.push_back(definition);
}

void OutboundWriter::RequestClose(bool died) {
  absl::MutexLock lock(&mu_);
  close_wanted_ = true;
  died_ = died;
}

void OutboundWriter::Retire() {
  absl::MutexLock lock(&mu_);
  window_.Retire();
}

void OutboundWriter::Report(pb::CaptureReport report) {
  report.set_writer(spool_->writer().ToBytes());
  absl::MutexLock lock(&mu_);
  // Who asked is gone with its stream.
  if (window_.state() != SendWindow::State::kOpen) return;
  reports_.push_back(std::move(report));
  if (reports_.size() > kReportsMax) reports_.pop_front();
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
}

void OutboundWriter::OnDisconnected() {
  absl::MutexLock lock(&mu_);
  window_.Disconnect();
  reports_.clear();
}

SendWindow::Action OutboundWriter::ActionLocked(absl::Duration now) const {
  if (now < not_before_) return {};
  const std::uint64_t sendable = spool_->sendable_sequence();
  return window_.Next(sendable, close_wanted_ && sendable >= spool_->last_sequence());
}

bool OutboundWriter::HasNext(absl::Duration now) const {
  absl::MutexLock lock(&mu_);
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
        definitions_sent_count_ < definitions_.size() || !window_.Fits(bytes)) {
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

bool OutboundWriter::OnMessage(const pb::StreamChunksResponse& message, absl::Duration now) {
  switch (message.message_case()) {
    case pb::StreamChunksResponse::kOpened:
      OnOpened(message.opened(), now);
      return true;
    case pb::StreamChunksResponse::kAck:
      return OnAck(message.ack(), now);
    case pb::StreamChunksResponse::kRefused:
      OnRefused(message.refused(), now);
      return true;
    case pb::StreamChunksResponse::kDirective: {
      absl::MutexLock lock(&mu_);
      OnDirectiveLocked(message.directive());
      return true;
    }
    case pb::StreamChunksResponse::MESSAGE_NOT_SET:
      return true;
  }
  return true;
}

void OutboundWriter::OnOpened(const pb::Opened& opened, absl::Duration now) {
  const std::uint64_t last_sequence = spool_->last_sequence();
  std::optional<std::uint32_t> held;
  if (opened.committed_sequence() > 0 && opened.committed_sequence() <= last_sequence) {
    held = spool_->ReadChecksum(opened.committed_sequence());
  }
  SendWindow::Resume resume;
  {
    absl::MutexLock lock(&mu_);
    resume = window_.OnOpened(
        {opened.committed_sequence(), opened.committed_crc32c(), opened.credit_bytes()},
        last_sequence, held);
    definitions_sent_count_ = 0;
    generation_ = opened.generation();
    incarnation_ = opened.incarnation();
    refusal_.clear();
    // All that is asked of it now: what was asked before the connection broke may be over.
    opened_ = true;
    profiling_.reset();
    sampling_.reset();
    capture_.reset();
    reports_.clear();
    for (const pb::Directive& directive : opened.directives()) OnDirectiveLocked(directive);
  }
  // A retired spool keeps its own mark: what lies behind it moves to the writer that follows.
  if (resume != SendWindow::Resume::kRetire) {
    spool_->SetAcked({opened.committed_sequence(), opened.generation()});
  }
  log::Info("writer_opened", {{"writer", spool_->writer().ToText()},
                              {"trial_id", opened.trial_id()},
                              {"generation", opened.generation()},
                              {"committed", opened.committed_sequence()},
                              {"spooled", last_sequence},
                              {"resume", resume == SendWindow::Resume::kGoOn     ? "go_on"
                                         : resume == SendWindow::Resume::kReplay ? "replay"
                                                                                 : "retire"}});
  LogRejections(opened.rejections(), now);
}

void OutboundWriter::OnMasterSeen(const MasterSeen& seen) {
  absl::MutexLock lock(&mu_);
  const bool is_another = !seen.incarnation.empty() && seen.incarnation != incarnation_;
  if (!window_.closed() || !(seen.behind || is_another)) return;
  window_.TellAgain();
  log::Info("closed_writer_told_again",
            {{"writer", spool_->writer().ToText()}, {"another_database", is_another}});
}

bool OutboundWriter::OnAck(const pb::Ack& ack, absl::Duration now) {
  AckedMark mark;
  {
    absl::ReleasableMutexLock lock(&mu_);
    if (!window_.OnAck(ack.committed_sequence(), ack.credit_bytes(), ack.closed())) {
      const bool log_now = MayLogLocked("ack of unsent", now);
      lock.Release();
      if (log_now) {
        log::Warning("ack_of_unsent", {{"writer", spool_->writer().ToText()},
                                       {"sequence", ack.committed_sequence()}});
      }
      return false;
    }
    if (window_.state() == SendWindow::State::kRetired) return true;
    mark = {window_.acked(), generation_};
  }
  if (mark.sequence != spool_->acked().sequence) spool_->SetAcked(mark);
  LogRejections(ack.rejections(), now);
  return true;
}

// One line a minute of each reason.
bool OutboundWriter::MayLogLocked(const std::string& reason, absl::Duration now) {
  if (reasons_logged_.size() >= kReasonsMax && !reasons_logged_.contains(reason)) return false;
  absl::Duration& logged =
      reasons_logged_.try_emplace(reason, -absl::InfiniteDuration()).first->second;
  if (now - logged < kLogInterval) return false;
  logged = now;
  return true;
}

void OutboundWriter::LogRejections(
    const google::protobuf::RepeatedPtrField<pb::Rejection>& rejections, absl::Duration now) {
  for (const pb::Rejection& rejection : rejections) {
    {
      absl::MutexLock lock(&mu_);
      if (!MayLogLocked(absl::StrCat("rejected ", rejection.reason()), now)) continue;
    }
    log::Warning("chunks_rejected", {{"writer", spool_->writer().ToText()},
                                     {"first_sequence", rejection.first_sequence()},
                                     {"last_sequence", rejection.last_sequence()},
                                     {"samples", rejection.sample_count()},
                                     {"reason", rejection.reason()},
                                     {"message", rejection.message()}});
  }
}

void OutboundWriter::OnRefused(const pb::Refused& refused, absl::Duration now) {
  bool log_now = false;
  {
    absl::MutexLock lock(&mu_);
    // What was under way behind a Close that the master has taken.
    if (refused.reason() == "NOT_OPEN" && window_.is_closing()) return;
    log_now = refused.reason() != kClientTooOld && MayLogLocked(refused.reason(), now);
    absl::Duration delay = absl::Milliseconds(refused.retry_delay_ms());
    if (refused.terminal() &&
        (IsToBeShownAgain(refused.reason()) || refused.reason() == kNoPlace)) {
      // The master ended its session for what its token has used up, or others take all places: not for what
      // it is. To whoever waits for it, it is late and nothing else.
      delay = std::max(delay, kRatedInterval);
      window_.OnNotOpen();
    } else if (refused.terminal()) {
      delay = std::max(delay, OnTerminalLocked(refused, now));
    } else if (refused.reason() == "SEQUENCE_HOLE" &&
               refused.expected_sequence() > window_.acked()) {
      window_.OnHole(refused.expected_sequence());
    } else if (window_.state() == SendWindow::State::kOpening || refused.reason() == "NOT_OPEN" ||
               refused.reason() == "SEQUENCE_HOLE") {
      delay = std::max(delay, kNotTakenDelay);
      // An echo of what was under way when the session ended shortens no rest.
      if (window_.state() == SendWindow::State::kMustOpen) {
        delay = std::max(delay, not_before_ - now);
      }
      window_.OnNotOpen();
    } else if (ConcernsSequence(refused.reason())) {
      delay = std::max(delay, kNotTakenDelay);
      window_.OnNotTaken();
    } else if (IsToBeShownAgain(refused.reason())) {
      // A Credential's: an Open comes again by itself.
      shows_again_at_ = now + std::max(delay, kNotTakenDelay);
      delay = absl::ZeroDuration();
    } else if (refused.reason() == kTokenRefused && token_ != nullptr) {
      // A Credential's, too.
      token_->Reject(shown_.text);
    }
    if (delay > absl::ZeroDuration()) not_before_ = now + delay;
  }
  if (!log_now) return;
  log::Warning("writer_refused", {{"writer", spool_->writer().ToText()},
                                  {"trial", identity_.trial},
                                  {"reason", refused.reason()},
                                  {"message", refused.message()},
                                  {"terminal", refused.terminal()}});
}

absl::Duration OutboundWriter::OnTerminalLocked(const pb::Refused& refused, absl::Duration now) {
  const SendWindow::State before = window_.state();
  refusal_ = absl::StrCat(refused.reason(), ": ", refused.message());
  window_.OnRefused();
  const bool is_tokens = refused.reason() == kTokenRefused && token_ != nullptr;
  if (before == SendWindow::State::kRefused && now < echoes_until_) {
    return std::max(not_before_ - now, absl::ZeroDuration());
  }
  if (before != SendWindow::State::kOpen) {
    if (is_tokens) token_->Reject(shown_.text);
    return kReopenInterval;
  }
  echoes_until_ = now + kNotTakenDelay;
  // Of which token is not said: it may be the one of before, and another one under way. What an Open shows is told apart.
  return is_tokens ? kNotTakenDelay : kReopenInterval;
}

void OutboundWriter::OnDirectiveLocked(const pb::Directive& directive) {
  switch (directive.directive_case()) {
    case pb::Directive::kProfiling:
      profiling_ = directive.profiling();
      return;
    case pb::Directive::kSampling:
      sampling_ = directive.sampling();
      return;
    case pb::Directive::kCapture:
      capture_ = directive.capture();
      return;
    case pb::Directive::DIRECTIVE_NOT_SET:
      return;
  }
}

}  // namespace stepwell::agent
