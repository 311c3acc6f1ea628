// What OutboundWriter makes of the master's answers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "client/agent/outbound_writer.h"
#include "client/agent/refusal_reasons.h"

namespace stepwell::agent {
namespace {

// A refused writer is shown to the master again: its cause (a token, a trial) may be mended.
constexpr absl::Duration kReopenInterval = absl::Seconds(60);
// Rates let ten seconds' worth come at once.
constexpr absl::Duration kRatedInterval = absl::Seconds(10);
// What stands would fill the log.
constexpr absl::Duration kLogInterval = absl::Seconds(60);
// A master has some dozens; more would be made up.
constexpr std::size_t kReasonsMax = 64;

}  // namespace

bool OutboundWriter::OnMessage(const pb::StreamChunksResponse& message, absl::Duration now) {
  switch (message.message_case()) {
    case pb::StreamChunksResponse::kOpened:
      OnOpened(message.opened(), now);
      ready_mark_->Set();
      return true;
    case pb::StreamChunksResponse::kAck:
      return OnAck(message.ack(), now);
    case pb::StreamChunksResponse::kRefused:
      OnRefused(message.refused(), now);
      ready_mark_->Set();
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
    if (!held) held = spool_->GivenUpChecksum(opened.committed_sequence());
  }
  SendWindow::Resume resume;
  {
    absl::MutexLock lock(&mu_);
    // Where the spool was set back, what was sealed since may be a gap by now, which tells no checksum.
    resume = window_.OnOpened(
        {opened.committed_sequence(), opened.committed_crc32c(), opened.credit_bytes()},
        std::max(recovered_sequence_, sent_sequence_), held);
    // What a copy of the spool sent is no successor's to send, should this one be retired later.
    if (resume != SendWindow::Resume::kRetire) {
      sent_sequence_ = std::max(sent_sequence_, opened.committed_sequence());
    }
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
  ready_mark_->Set();
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
    // It moves no time at which something is due.
    if (HasNextLocked(now)) ready_mark_->Set();
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
  bool stays_closed = false;
  {
    absl::MutexLock lock(&mu_);
    if (refused.reason() == "NOT_OPEN" && IsEchoLocked(now)) return;
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
      if (window_.closed()) delay = absl::ZeroDuration();
      stays_closed = window_.closed();
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
  // Nobody has to mend anything.
  if (stays_closed) {
    return log::Info("closed_writer_stays", {{"writer", spool_->writer().ToText()},
                                             {"trial", identity_.trial},
                                             {"reason", refused.reason()}});
  }
  if (!log_now) return;
  log::Warning("writer_refused", {{"writer", spool_->writer().ToText()},
                                  {"trial", identity_.trial},
                                  {"reason", refused.reason()},
                                  {"message", refused.message()},
                                  {"terminal", refused.terminal()}});
}

// NOT_OPEN says nothing new of what was under way when the session ended, or behind a Close that the master has taken.
bool OutboundWriter::IsEchoLocked(absl::Duration now) {
  // Its Ack is on the way, or here.
  if (window_.is_closing()) closes_by_ = std::min(closes_by_, now + kReopenInterval);
  return window_.is_closing() || window_.state() == SendWindow::State::kMustOpen ||
         window_.state() == SendWindow::State::kRefused;
}

absl::Duration OutboundWriter::OnTerminalLocked(const pb::Refused& refused, absl::Duration now) {
  const SendWindow::State before = window_.state();
  refusal_ = absl::StrCat(refused.reason(), ": ", refused.message());
  window_.OnRefused();
  if (window_.closed()) {
    refusal_.clear();
    return absl::ZeroDuration();
  }
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
