#include "server/ingest_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/credit_plan.h"
#include "server/ingest_answers.h"

namespace stepwell {
namespace {

// A stream's 256 writers open at once, with all their labels, and send a heartbeat each few seconds.
constexpr Rate kControlRate{.per_second = 16 << 10, .burst = 256 << 10};
// Whose token is used up is shown again after ten seconds, with as much as its credit was.
constexpr Rate kUnderWayRate{.per_second = kCreditBytesMax / 10.0, .burst = kCreditBytesMax};

}  // namespace

absl::StatusOr<std::shared_ptr<IngestStream>> IngestStream::Create(const IngestContext& context,
                                                                   std::function<void()> on_post,
                                                                   Caller caller, IngestPace pace) {
  const MasterState::Snapshot now = context.state.Get();
  if (now.role != MasterRole::kOwner) return absl::UnavailableError(now.reason());
  std::shared_ptr<IngestStream> stream(
      new IngestStream(context, now.epoch, std::move(on_post), std::move(caller), std::move(pace)));
  context.registry.AddStream(stream);
  ++context.stats.streams_open;
  // Ownership may have ended before the stream could be found by those who end streams.
  if (context.state.epoch() != now.epoch) {
    stream->Finish();
    return absl::UnavailableError("another master owns the database now");
  }
  // Likewise its token.
  if (HasEnded(stream->caller_)) {
    stream->Finish();
    return TokenEnded();
  }
  return stream;
}

IngestStream::IngestStream(const IngestContext& context, std::int64_t epoch,
                           std::function<void()> on_post, Caller caller, IngestPace pace)
    : context_(context),
      epoch_(epoch),
      caller_(std::move(caller)),
      pace_(std::move(pace)),
      board_(on_post),
      on_end_(on_post),
      since_time_us_(absl::ToUnixMicros(context.clock.Now())),
      heard_time_us_(since_time_us_),
      control_left_(kControlRate, SteadyTime::Now(context.clock)),
      under_way_left_(kUnderWayRate, SteadyTime::Now(context.clock)) {
  // Whoever makes one stream after the other, and has its writers refused, gains nothing by it.
  under_way_left_.Spend(kUnderWayRate.burst, SteadyTime::Now(context.clock));
}

void IngestStream::Finish() {
  std::vector<std::unique_ptr<IngestSession>> released;
  {
    absl::MutexLock lock(&mu_);
    for (auto& [writer, session] : sessions_) released.push_back(std::move(session));
    sessions_.clear();
    if (end_status_.ok()) end_status_ = absl::CancelledError("the stream has finished");
  }
  board_.Close();
  for (const auto& session : released) Release(*session);
  context_.registry.RemoveStream(this);
  --context_.stats.streams_open;
}

void IngestStream::Release(const IngestSession& session) {
  context_.registry.Release(session.trial_id(), session.writer_no(), session.generation());
  context_.director.Lost(session.trial_id(), session.writer_no(), session.generation());
}

bool IngestStream::Direct(const Uuid& writer, std::uint64_t version,
                          const pb::Directive& directive) {
  return board_.PostDirective(writer, version, directive);
}

void IngestStream::NoteHeard() {
  heard_time_us_.store(absl::ToUnixMicros(context_.clock.Now()), std::memory_order_relaxed);
}

bool IngestStream::AwaitAnswersTaken() {
  if (board_.WaitForRoom(SteadyTime::InfinitePast())) return true;
  if (before_wait_) std::exchange(before_wait_, nullptr)();
  if (board_.WaitForRoom(SteadyTime::Now() + pace_.answers_patience)) return true;
  End(absl::ResourceExhaustedError(absl::StrCat("the client took no answers for ",
                                                absl::FormatDuration(pace_.answers_patience))));
  return false;
}

void IngestStream::Handle(const pb::StreamChunksRequest& message) {
  NoteHeard();
  // Once for each message: what it brings is posted without a wait, and is a few.
  if (AwaitAnswersTaken()) HandleKind(message);
  is_admitted_ = false;
}

void IngestStream::HandleKind(const pb::StreamChunksRequest& message) {
  using Message = pb::StreamChunksRequest;
  switch (message.message_case()) {
    case Message::kOpen:
      return HandleOpen(message.open());
    case Message::kDefinitions:
      return HandleDefinitions(message.definitions());
    case Message::kChunk:
      return HandleChunk(message.chunk());
    case Message::kGap:
      return HandleGap(message.gap());
    case Message::kHeartbeat:
      return HandleHeartbeat(message.heartbeat());
    case Message::kClose:
      return HandleClose(message.close());
    case Message::kCaptureReport:
      return HandleCaptureReport(message.capture_report());
    case Message::kCredential:
      return HandleCredential(message.credential());
    case Message::MESSAGE_NOT_SET:
      // A newer client may know more messages: nothing of ours is lost by skipping one.
      if (!AwaitBytesInVain("", message.ByteSizeLong())) return;
      return PostRefused("",
                         Invalid("MESSAGE_UNKNOWN",
                                 "the message is empty or of a kind unknown here; allowed are"
                                 " open, definitions, chunk, gap, heartbeat, close,"
                                 " capture_report, credential"),
                         false);
  }
}

void IngestStream::HandleMalformed(const std::string& writer, const Complaint& complaint,
                                   std::size_t bytes) {
  NoteHeard();
  if (AwaitAnswersTaken() && AwaitBytesInVain(writer, bytes)) {
    PostRefused(writer, complaint, false);
  }
  is_admitted_ = false;
}

void IngestStream::Committed(const CheckedChunk& chunk) {
  AckBoard::Ack ack;
  bool current = false;
  {
    absl::MutexLock lock(&mu_);
    const auto place = sessions_.find(chunk.writer);
    // The client may have opened the same UUID in another trial since.
    current = place != sessions_.end() && place->second->trial_id() == chunk.trial_id &&
              place->second->writer_no() == chunk.writer_no &&
              place->second->generation() == chunk.generation;
    if (current) {
      IngestSession& session = *place->second;
      session.Committed(chunk.last_sequence, chunk.bytes);
      if (chunk.closing) session.CloseCommitted();
      ack.committed_sequence = session.committed_sequence();
    }
  }
  if (chunk.closing) {
    context_.registry.NoteState(chunk.trial_id, chunk.writer_no, *chunk.closing);
    context_.registry.Release(chunk.trial_id, chunk.writer_no, chunk.generation);
    if (current) board_.DropDirectives(chunk.writer, chunk.generation);
    context_.director.Closed(chunk.trial_id, chunk.writer_no, chunk.generation);
    context_.on_close(chunk.trial_id);
  }
  if (current) {
    ack.credit_bytes = context_.Credit();
    ack.closed = chunk.closing.has_value();
    if (chunk.rejected) ack.rejections.push_back(MakeRejection(chunk));
    HoldAck(chunk.writer, std::move(ack));
    context_.stats.ack_latency.Observe(SteadyTime::Now() - chunk.checked_time);
  }
  CountOff(chunk);
}

void IngestStream::CountOff(const CheckedChunk& chunk) {
  // Last of all: who waits for this must find the answer on the board.
  absl::MutexLock lock(&mu_);
  inflight_bytes_ -= chunk.bytes;
  --inflight_count_;
}

void IngestStream::Refenced(const CheckedChunk& chunk) {
  Fence(chunk.writer, chunk.generation);
  CountOff(chunk);
}

void IngestStream::Fence(const Uuid& writer, std::uint64_t generation) {
  TrialId trial_id{};
  WriterNo writer_no{};
  {
    absl::MutexLock lock(&mu_);
    const auto place = sessions_.find(writer);
    if (place == sessions_.end() || place->second->generation() != generation) return;
    if (place->second->state() == IngestSession::State::kFenced) return;
    place->second->Fenced();
    trial_id = place->second->trial_id();
    writer_no = place->second->writer_no();
  }
  board_.DropDirectives(writer, generation);
  context_.director.Lost(trial_id, writer_no, generation);
  PostRefused(writer.ToBytes(),
              {absl::StatusCode::kAborted, "FENCED", "another stream has opened this writer since"},
              true);
}

void IngestStream::RefuseTrial(TrialId trial_id, const Complaint& why) {
  RefuseSessions([&](const IngestSession& session) { return session.trial_id() == trial_id; }, why);
}

void IngestStream::RefuseEndedTokens() {
  if (HasEnded(caller_)) return End(TokenEnded());
  RefuseSessions([](const IngestSession& session) { return HasEnded(session.caller()); },
                 TokenComplaint(TokenEnded()));
}

void IngestStream::RefuseSessions(const std::function<bool(const IngestSession&)>& concerns,
                                  const Complaint& why) {
  struct Refusal {
    Uuid writer;
    TrialId trial_id{};
    WriterNo writer_no{};
    std::uint64_t generation = 0;
  };
  std::vector<Refusal> refusals;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [writer, session] : sessions_) {
      if (session->refused() || !concerns(*session)) continue;
      if (session->state() == IngestSession::State::kClosed) continue;
      session->Refuse(why);
      refusals.push_back(
          {writer, session->trial_id(), session->writer_no(), session->generation()});
    }
  }
  for (const Refusal& each : refusals) {
    board_.DropDirectives(each.writer, each.generation);
    context_.registry.Release(each.trial_id, each.writer_no, each.generation);
    context_.director.Lost(each.trial_id, each.writer_no, each.generation);
    // One for each writer of the stream, of which there are not many.
    board_.Post(MakeRefused(each.writer.ToBytes(), why, true, 0));
  }
}

void IngestStream::RefreshCredit() {
  std::vector<std::pair<Uuid, AckBoard::Ack>> acks;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [writer, session] : sessions_) {
      if (session->state() != IngestSession::State::kOpen) continue;
      acks.emplace_back(writer, AckBoard::Ack{.committed_sequence = session->committed_sequence()});
    }
  }
  const std::int64_t credit_bytes = context_.Credit();
  for (auto& [writer, ack] : acks) {
    ack.credit_bytes = credit_bytes;
    HoldAck(writer, std::move(ack));
  }
  if (!acks.empty()) TellAcks();
}

void IngestStream::End(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (!end_status_.ok()) return;
    end_status_ = why;
  }
  // Wakes whoever waits for room on a board that nobody will empty any more.
  board_.Close();
  on_end_();
}

absl::Status IngestStream::end_status() const {
  absl::MutexLock lock(&mu_);
  return end_status_;
}

bool IngestStream::settled() const {
  absl::MutexLock lock(&mu_);
  return inflight_count_ == 0;
}

std::optional<ConnectedAgent> IngestStream::agent() const {
  absl::MutexLock lock(&mu_);
  std::optional<ConnectedAgent> agent = agent_;
  if (!agent) return agent;
  for (const auto& [writer, session] : sessions_) {
    const IngestSession::State state = session->state();
    const bool open =
        state == IngestSession::State::kOpen || state == IngestSession::State::kClosing;
    agent->writers_open += open ? 1 : 0;
  }
  agent->since_time_us = since_time_us_;
  agent->seen_time_us = heard_time_us_.load(std::memory_order_relaxed);
  return agent;
}

bool IngestStream::WaitSettled(SteadyTime deadline) {
  const auto is_settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return inflight_count_ == 0 || !end_status_.ok();
  };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&is_settled), deadline.Left()) && end_status_.ok();
}

void IngestStream::PostRefused(const std::string& writer, const Complaint& complaint, bool terminal,
                               std::uint64_t expected_sequence) {
  board_.Post(MakeRefused(writer, complaint, terminal, expected_sequence));
}

void IngestStream::PostAck(const Uuid& writer, AckBoard::Ack ack) {
  HoldAck(writer, std::move(ack));
  board_.Tell();
}

void IngestStream::HoldAck(const Uuid& writer, AckBoard::Ack ack) {
  const bool stops = ack.credit_bytes == 0;
  board_.HoldAck(writer, std::move(ack));
  // Behind it: who refreshes from now on is told later than this.
  if (stops) context_.registry.NoteStopped();
}

AckBoard::Ack IngestStream::AckOf(const IngestSession& session) const {
  AckBoard::Ack ack;
  ack.credit_bytes = context_.Credit();
  absl::MutexLock lock(&mu_);
  ack.committed_sequence = session.committed_sequence();
  return ack;
}

}  // namespace stepwell
