// What IngestStream does where RateLimits hold it.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "server/ingest_answers.h"
#include "server/ingest_stream.h"

namespace stepwell {
namespace {

// Others may have used up what was waited for.
constexpr absl::Duration kLookEach = absl::Milliseconds(500);
// A client gives a silent connection up after a minute, and who is not heard of for that long counts as gone.
constexpr absl::Duration kSayEach = absl::Seconds(10);
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
  // Who opens and is refused again and again gets no further than it reads.
  board_.WaitForRoom(SteadyTime::InfiniteFuture());
  RefuseSessions([session](const IngestSession& each) { return &each == session; }, why);
}

bool IngestStream::AwaitAllowance(const std::string& writer, RateKind kind, const Caller& payer,
                                  double amount, Beyond beyond, const IngestSession* session) {
  if (context_.rates == nullptr) return true;
  const RatePayer counted{pace_.address, payer.get()};
  if (!pace_.is_slowed) {
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
    if (missing.is_of_token && beyond != Beyond::kHoldsStream && !MayHold(payer)) {
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
    // Others' chunks wait for no rate of this one's.
    queue_place_ = {};
    message_place_ = {};
    const SteadyTime begin = SteadyTime::Now();
    bool ends = false;
    {
      absl::MutexLock lock(&mu_);
      ends = mu_.AwaitWithTimeout(absl::Condition(&has_ended), std::min(missing.wait, kLookEach));
    }
    const SteadyTime now = SteadyTime::Now();
    context_.rates->NoteSlowed(kind, now - begin);
    if (ends) return false;
    // Counted over all waits: many short ones keep a writer's heartbeat as long as one does.
    if (now - said_ < kSayEach) continue;
    said_ = now;
    SayStillHere();
  }
}

bool IngestStream::AwaitAllowanceOf(const std::string& writer, const IngestSession& session,
                                    RateKind kind, double amount) {
  return AwaitAllowance(writer, kind, session.caller(), amount, Beyond::kEndsSession, &session);
}

bool IngestStream::AwaitBytes(const std::string& writer, const IngestSession& session,
                              std::size_t bytes) {
  if (!pace_.is_slowed) return true;
  return AwaitAllowanceOf(writer, session, RateKind::kIngestBytes, static_cast<double>(bytes));
}

bool IngestStream::AwaitOwnBytes(std::size_t bytes) {
  return AwaitAllowance("", RateKind::kIngestBytes, caller_, static_cast<double>(bytes),
                        Beyond::kHoldsStream);
}

bool IngestStream::AwaitBytesInVain(const std::string& writer, std::size_t bytes) {
  if (!pace_.is_slowed) return true;
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
  if (!pace_.is_slowed) return true;
  const std::size_t bytes = message.ByteSizeLong();
  return control_left_.TryTake(static_cast<double>(bytes), SteadyTime::Now(context_.clock)) ==
             absl::ZeroDuration() ||
         AwaitOwnBytes(bytes);
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
