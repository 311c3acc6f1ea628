// What IngestStream does where RateLimits hold it.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "base/steady_time.h"
#include "server/ingest_answers.h"
#include "server/ingest_stream.h"

namespace stepwell {
namespace {

// Others may have used up what was waited for.
constexpr absl::Duration kLookEach = absl::Milliseconds(500);
// gRPC's frame around a message: an empty one is not nothing.
constexpr std::size_t kFrameBytes = 5;

}  // namespace

bool IngestStream::MayHold(const Caller& payer) const {
  if (payer == nullptr) return true;
  if (caller_ == nullptr || PayerOf(*payer) != PayerOf(*caller_)) return false;
  const absl::MutexLock lock(&mu_);
  return std::none_of(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    const IngestSession& session = *entry.second;
    const bool is_open = session.state() == IngestSession::State::kOpen ||
                         session.state() == IngestSession::State::kClosing;
    return is_open && session.caller() != nullptr && PayerOf(*session.caller()) != PayerOf(*payer);
  });
}

void IngestStream::RefuseWriter(const std::string& writer, const Complaint& why) {
  const auto uuid = Uuid::FromBytes(writer);
  const IngestSession* session = nullptr;
  {
    const absl::MutexLock lock(&mu_);
    const auto place = uuid ? sessions_.find(*uuid) : sessions_.end();
    const bool is_open =
        place != sessions_.end() && (place->second->state() == IngestSession::State::kOpen ||
                                     place->second->state() == IngestSession::State::kClosing);
    if (is_open) session = place->second.get();
  }
  if (session == nullptr) return PostRefused(writer, why, false);
  RefuseSessions([session](const IngestSession& each) { return &each == session; }, why);
}

bool IngestStream::AwaitAllowance(const std::string& writer, RateKind kind, const Caller& payer,
                                  double amount, Beyond beyond, const IngestSession* session) {
  if (context_.rates == nullptr) return true;
  const RatePayer counted{pace_.address, payer.get()};
  // Of what was admitted the rate had something left; whose writer it opens is known only now.
  if (!pace_.is_slowed || (is_admitted_ && kind != RateKind::kOpens)) {
    context_.rates->Spend(kind, counted, amount);
    return true;
  }
  const auto has_ended = [this, session]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !end_status_.ok() ||
           (session != nullptr && session->state() == IngestSession::State::kFenced);
  };
  while (true) {
    const RateLimits::Missing missing = context_.rates->TryTake(kind, counted, amount);
    if (missing.wait == absl::ZeroDuration()) return true;
    const bool is_refused =
        is_admitted_ || (missing.is_of_token && beyond != Beyond::kHoldsStream && !MayHold(payer));
    if (is_refused) {
      // With words; something may be left by now.
      const absl::Status may = context_.rates->Take(kind, counted, amount);
      if (may.ok()) return true;
      if (beyond == Beyond::kEndsSession) {
        RefuseWriter(writer, TokenComplaint(may));
      } else {
        PostRefused(writer, TokenComplaint(may), false);
      }
      return false;
    }
    if (before_wait_) std::exchange(before_wait_, nullptr)();
    const SteadyTime begin = SteadyTime::Now();
    bool ends = false;
    {
      absl::MutexLock lock(&mu_);
      ends = mu_.AwaitWithTimeout(absl::Condition(&has_ended), std::min(missing.wait, kLookEach));
    }
    const SteadyTime now = SteadyTime::Now();
    context_.rates->NoteSlowed(kind, now - begin);
    if (ends) return false;
    NoteWaiting();
  }
}

void IngestStream::NoteWaiting() {
  const SteadyTime now = SteadyTime::Now();
  // Counted over all waits: many short ones keep a writer's heartbeat as long as one does.
  if (now - said_ < pace_.say_each) return;
  said_ = now;
  SayStillHere();
}

bool IngestStream::TryTakeSamples(const IngestSession& session, std::int64_t count) {
  if (context_.rates == nullptr) return true;
  const RatePayer payer{pace_.address, session.caller().get()};
  const auto amount = static_cast<double>(count);
  if (OwesBytes()) {
    return context_.rates->TryTake(RateKind::kIngestSamples, payer, amount).wait ==
           absl::ZeroDuration();
  }
  context_.rates->Spend(RateKind::kIngestSamples, payer, amount);
  return true;
}

bool IngestStream::AwaitAllowanceOf(const std::string& writer, const IngestSession& session,
                                    RateKind kind, double amount) {
  return AwaitAllowance(writer, kind, session.caller(), amount, Beyond::kEndsSession, &session);
}

bool IngestStream::AwaitBytes(const std::string& writer, const IngestSession& session,
                              std::size_t bytes) {
  if (!OwesBytes()) return true;
  return AwaitAllowanceOf(writer, session, RateKind::kIngestBytes, static_cast<double>(bytes));
}

bool IngestStream::AwaitOwnBytes(std::size_t bytes) {
  return AwaitAllowance("", RateKind::kIngestBytes, caller_, static_cast<double>(bytes),
                        Beyond::kHoldsStream);
}

bool IngestStream::AwaitBytesInVain(const std::string& writer, std::size_t bytes) {
  if (!OwesBytes()) return true;
  bytes += kFrameBytes;
  const auto uuid = Uuid::FromBytes(writer);
  const IngestSession* session = nullptr;
  bool has_ended = false;
  {
    const absl::MutexLock lock(&mu_);
    const auto place = uuid ? sessions_.find(*uuid) : sessions_.end();
    if (place != sessions_.end()) {
      has_ended = place->second->state() == IngestSession::State::kFenced;
      if (!has_ended) session = place->second.get();
    }
  }
  if (session != nullptr) return AwaitBytes(writer, *session, bytes);
  // Its client did not know yet: were that to cost what the token lacks already, each refusal would bring on the next.
  const bool is_under_way =
      has_ended && under_way_left_.TryTake(static_cast<double>(bytes),
                                           SteadyTime::Now(context_.clock)) == absl::ZeroDuration();
  return is_under_way || AwaitOwnBytes(bytes);
}

bool IngestStream::AwaitControlBytes(const google::protobuf::MessageLite& message) {
  return AwaitControlBytes(message.ByteSizeLong());
}

bool IngestStream::AwaitControlBytes(std::size_t bytes) {
  if (!OwesBytes()) return true;
  return control_left_.TryTake(static_cast<double>(bytes), SteadyTime::Now(context_.clock)) ==
             absl::ZeroDuration() ||
         AwaitOwnBytes(bytes);
}

bool IngestStream::Admit(const MessageHead& head, std::size_t bytes,
                         const std::function<void()>& before_wait) {
  using Message = pb::StreamChunksRequest;
  const auto cleanup = absl::MakeCleanup([this] { before_wait_ = nullptr; });
  before_wait_ = before_wait;
  if (!AwaitAnswersTaken()) return false;
  if (head.kind == Message::kChunk || head.kind == Message::kGap) AwaitInflight();
  if (!AwaitRates(head, bytes)) return false;
  is_admitted_ = true;
  return !ended();
}

bool IngestStream::AwaitRates(const MessageHead& head, std::size_t bytes) {
  using Message = pb::StreamChunksRequest;
  if (context_.rates == nullptr || !pace_.is_slowed) return true;
  switch (head.kind) {
    case Message::kChunk:
    case Message::kGap:
    case Message::kDefinitions:
      break;
    case Message::kOpen:
    case Message::kCredential:
      // Without a token of the writer's own nothing is known of who pays.
      return AwaitControlBytes(bytes) &&
             AwaitAllowance(
                 head.writer, RateKind::kOpens, caller_, 0,
                 head.kind == Message::kOpen ? Beyond::kEndsSession : Beyond::kLeavesSession);
    case Message::kHeartbeat:
    case Message::kClose:
    case Message::kCaptureReport:
      return AwaitControlBytes(bytes);
    case Message::MESSAGE_NOT_SET:
      return AwaitBytesInVain("", bytes);
  }
  const IngestSession* session = LivingSession(head.writer);
  if (session == nullptr) return AwaitBytesInVain(head.writer, bytes);
  if (!AwaitBytes(head.writer, *session, bytes)) return false;
  // How much of it there is is known once it is parsed: whoever had too much waits with the next.
  if (head.kind == Message::kGap) return true;
  return AwaitAllowanceOf(
      head.writer, *session,
      head.kind == Message::kChunk ? RateKind::kIngestSamples : RateKind::kSeries, 0);
}

IngestSession* IngestStream::LivingSession(const std::string& writer) const {
  const auto uuid = Uuid::FromBytes(writer);
  const absl::MutexLock lock(&mu_);
  const auto place = uuid ? sessions_.find(*uuid) : sessions_.end();
  const bool lives =
      place != sessions_.end() && place->second->state() != IngestSession::State::kFenced;
  return lives ? place->second.get() : nullptr;
}

void IngestStream::SayStillHere() {
  NoteHeard();
  std::vector<std::pair<TrialId, WriterNo>> writers;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [writer, session] : sessions_) {
      if (session->state() != IngestSession::State::kOpen) continue;
      writers.emplace_back(session->trial_id(), session->writer_no());
    }
  }
  // Their heartbeats wait behind what is not read yet.
  for (const auto& [trial_id, writer_no] : writers) context_.registry.Heard(trial_id, writer_no);
  RefreshCredit();
}

}  // namespace stepwell
