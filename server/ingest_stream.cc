#include "server/ingest_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "server/ingest_answers.h"
#include "server/journal_codec.h"
#include "server/limits.h"
#include "server/open_check.h"

namespace stepwell {
namespace {

// A client that sends beyond its credit is not read any further.
constexpr std::int64_t kInflightBytesMax = 4 * kCreditBytesMax;
// Beside its bytes, what a chunk costs in the queue.
constexpr std::int64_t kChunkOverheadBytes = 512;

}  // namespace

std::int64_t IngestContext::Credit() const {
  CreditLoad load;
  load.database_up = state.Get().ready();
  load.queue_bytes = queue.bytes();
  load.queue_bytes_max = queue.bytes_max();
  load.unfolded_bytes = heads.unfolded_bytes();
  load.writer_count = static_cast<int>(registry.open_count());
  return PlanCredit(load);
}

absl::StatusOr<std::shared_ptr<IngestStream>> IngestStream::Create(const IngestContext& context,
                                                                   std::function<void()> on_post) {
  const MasterState::Snapshot now = context.state.Get();
  if (now.role != MasterRole::kOwner) return absl::UnavailableError(now.reason());
  std::shared_ptr<IngestStream> stream(new IngestStream(context, now.epoch, std::move(on_post)));
  context.registry.AddStream(stream);
  ++context.stats.streams_open;
  // Ownership may have ended before the stream could be found by those who end streams.
  if (context.state.epoch() != now.epoch) {
    stream->Finish();
    return absl::UnavailableError("another master owns the database now");
  }
  return stream;
}

IngestStream::IngestStream(const IngestContext& context, std::int64_t epoch,
                           std::function<void()> on_post)
    : context_(context), epoch_(epoch), board_(on_post), on_end_(on_post) {}

void IngestStream::Finish() {
  std::vector<std::unique_ptr<IngestSession>> released;
  {
    absl::MutexLock lock(&mu_);
    for (auto& [writer, session] : sessions_) released.push_back(std::move(session));
    sessions_.clear();
    if (end_status_.ok()) end_status_ = absl::CancelledError("the stream has finished");
  }
  board_.Close();
  for (const auto& session : released) {
    context_.registry.Release(session->trial_id(), session->writer_no(), session->generation());
  }
  context_.registry.RemoveStream(this);
  --context_.stats.streams_open;
}

void IngestStream::Handle(const pb::StreamChunksRequest& message) {
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
    case Message::MESSAGE_NOT_SET:
      // A newer client may know more messages: nothing of ours is lost by skipping one.
      return PostRefused("",
                         Invalid("MESSAGE_UNKNOWN",
                                 "the message is empty or of a kind unknown here; allowed are"
                                 " open, definitions, chunk, gap, heartbeat, close"),
                         false);
  }
}

void IngestStream::HandleMalformed(const std::string& writer, const Complaint& complaint) {
  PostRefused(writer, complaint, false);
}

bool IngestStream::HasPlaceFor(const Uuid& writer) {
  absl::MutexLock lock(&mu_);
  // A machine's stream outlives its trials: writers that are closed give up their places.
  if (sessions_.size() >= kWritersPerStreamMax) {
    absl::erase_if(sessions_, [](const auto& entry) {
      return entry.second->state() == IngestSession::State::kClosed;
    });
  }
  return sessions_.contains(writer) || sessions_.size() < kWritersPerStreamMax;
}

void IngestStream::HandleOpen(const pb::Open& open) {
  OpenWriterRequest request;
  if (auto complaint = CheckOpen(open, request))
    return PostRefused(open.writer(), *complaint, true);
  if (!HasPlaceFor(request.writer)) {
    return PostRefused(open.writer(),
                       {absl::StatusCode::kResourceExhausted, "WRITERS_PER_STREAM",
                        absl::StrCat("the stream holds ", kWritersPerStreamMax,
                                     " writers, which is the limit; use another stream")},
                       true);
  }
  request.owner_epoch = epoch_;
  const auto opened = context_.store.OpenWriter(request);
  if (!opened.ok()) {
    if (opened.status().code() == absl::StatusCode::kAborted) context_.state.ReportLost(epoch_);
    const Complaint complaint = OpenComplaint(opened.status(), request);
    // What the client cannot mend by itself and time will not heal is terminal.
    const bool terminal = complaint.code != absl::StatusCode::kUnavailable;
    return PostRefused(open.writer(), complaint, terminal);
  }
  context_.state.IfOwner(epoch_, [&] {
    context_.heads.NoteWriter(opened->trial_id, opened->writer_no, opened->folded_sequence);
  });
  std::unique_ptr<IngestSession> before;
  {
    absl::MutexLock lock(&mu_);
    auto& place = sessions_[request.writer];
    // The old one's inflight chunks come back as another writer's, or under an older generation,
    // and are only counted off.
    before = std::exchange(place, std::make_unique<IngestSession>(*opened, WriterLabels(request)));
  }
  if (before != nullptr && before->trial_id() != opened->trial_id) {
    context_.registry.Release(before->trial_id(), before->writer_no(), before->generation());
  }
  board_.Forget(request.writer);
  board_.Post(MakeOpened(open, *opened, context_.incarnation, context_.Credit(),
                         absl::ToUnixMicros(context_.clock.Now())));
  if (!context_.registry.Claim(request.writer, *opened, shared_from_this())) {
    Fence(request.writer, opened->generation);
  }
  log::Info("writer_opened", {{"trial", Value(opened->trial_id)},
                              {"writer_no", Value(opened->writer_no)},
                              {"writer", request.writer.ToText()},
                              {"generation", opened->generation},
                              {"committed", opened->committed_sequence}});
}

IngestSession* IngestStream::FindSession(const std::string& writer) {
  const auto uuid = Uuid::FromBytes(writer);
  MaybeComplaint complaint;
  {
    absl::MutexLock lock(&mu_);
    const auto place = uuid ? sessions_.find(*uuid) : sessions_.end();
    if (place != sessions_.end()) {
      if (place->second->state() != IngestSession::State::kFenced) return place->second.get();
      complaint = Complaint{absl::StatusCode::kAborted, "FENCED",
                            "another stream has opened this writer since"};
    }
  }
  if (!complaint) {
    complaint = Complaint{absl::StatusCode::kFailedPrecondition, "NOT_OPEN",
                          "the writer is not open on this stream; send Open first"};
  }
  PostRefused(writer, *complaint, true);
  return nullptr;
}

bool IngestStream::TakeRange(const std::string& writer, IngestSession& session, std::uint64_t first,
                             std::uint64_t last, std::uint64_t& from) {
  context_.registry.Heard(session.trial_id(), session.writer_no());
  Offered offered;
  std::uint64_t expected = 0;
  std::uint64_t committed = 0;
  {
    absl::MutexLock lock(&mu_);
    offered = session.Offer(first, last);
    expected = session.next_sequence();
    committed = session.committed_sequence();
  }
  switch (offered.kind) {
    case Offered::kTake:
      from = offered.first_sequence;
      return true;
    case Offered::kRepeat:
      ++context_.stats.chunks_repeated;
      if (last <= committed) board_.PostAck(*Uuid::FromBytes(writer), AckOf(session));
      return false;
    case Offered::kHole:
      PostRefused(writer,
                  {absl::StatusCode::kFailedPrecondition, "SEQUENCE_HOLE",
                   absl::StrCat("sequence ", first, " came where ", expected,
                                " is expected; send from there")},
                  false, expected);
      return false;
    case Offered::kEnded:
      PostRefused(writer,
                  {absl::StatusCode::kFailedPrecondition, "CLOSED",
                   "the writer was closed on this stream; open it again to send more"},
                  true);
      return false;
  }
  return false;
}

CheckedChunk IngestStream::NewChunk(const IngestSession& session) {
  CheckedChunk checked;
  checked.listener = shared_from_this();
  checked.trial_id = session.trial_id();
  checked.writer_no = session.writer_no();
  checked.attempt = session.attempt();
  checked.generation = session.generation();
  return checked;
}

void IngestStream::HandleChunk(const pb::Chunk& chunk) {
  IngestSession* session = FindSession(chunk.writer());
  if (session == nullptr) return;
  if (auto complaint = CheckChunkFrame(chunk))
    return PostRefused(chunk.writer(), *complaint, false);
  AwaitRoom();
  std::uint64_t from = 0;
  if (!TakeRange(chunk.writer(), *session, chunk.sequence(), chunk.sequence(), from)) return;
  ChunkContent content = CheckChunkContent(chunk, session->refs(), session->writer_no());
  CheckedChunk checked = NewChunk(*session);
  checked.writer = *Uuid::FromBytes(chunk.writer());
  checked.first_sequence = chunk.sequence();
  checked.last_sequence = chunk.sequence();
  checked.crc32c = chunk.crc32c();
  AppendJournalEntry({.first_sequence = chunk.sequence(),
                      .last_sequence = chunk.sequence(),
                      .attempt = session->attempt(),
                      .sealed_time_us = chunk.sealed_time_us(),
                      .crc32c = chunk.crc32c(),
                      .has_body = !content.whole_rejected,
                      .targets = std::move(content.targets),
                      .body = chunk.body()},
                     checked.journal_entry);
  if (content.rejected) ++context_.stats.chunks_rejected;
  checked.decoded = std::move(content.decoded);
  checked.gaps = std::move(content.gaps);
  checked.rejected = std::move(content.rejected);
  Enqueue(*session, std::move(checked));
}

void IngestStream::HandleGap(const pb::GapRange& range) {
  IngestSession* session = FindSession(range.writer());
  if (session == nullptr) return;
  Gap gap;
  if (auto complaint = CheckGapRange(range, session->writer_no(), gap)) {
    return PostRefused(range.writer(), *complaint, false);
  }
  AwaitRoom();
  std::uint64_t from = 0;
  if (!TakeRange(range.writer(), *session, range.first_sequence(), range.last_sequence(), from)) {
    return;
  }
  CheckedChunk checked = NewChunk(*session);
  checked.writer = *Uuid::FromBytes(range.writer());
  checked.first_sequence = from;
  checked.last_sequence = range.last_sequence();
  gap.first_sequence = from;
  checked.gaps.push_back(std::move(gap));
  AppendJournalEntry({.first_sequence = from,
                      .last_sequence = range.last_sequence(),
                      .attempt = session->attempt()},
                     checked.journal_entry);
  Enqueue(*session, std::move(checked));
}

void IngestStream::HandleHeartbeat(const pb::Heartbeat& heartbeat) {
  if (IngestSession* session = FindSession(heartbeat.writer())) {
    context_.registry.Heard(session->trial_id(), session->writer_no());
  }
}

void IngestStream::HandleClose(const pb::Close& close) {
  IngestSession* session = FindSession(close.writer());
  if (session == nullptr) return;
  MaybeComplaint complaint;
  std::uint64_t next_sequence = 0;
  bool already = false;
  bool closed = false;
  {
    absl::MutexLock lock(&mu_);
    already = session->state() != IngestSession::State::kOpen;
    complaint = session->OfferClose(close.final_sequence());
    next_sequence = session->next_sequence();
    closed = session->state() == IngestSession::State::kClosed;
  }
  if (complaint) return PostRefused(close.writer(), *complaint, false, next_sequence);
  if (closed) {
    AckBoard::Ack ack = AckOf(*session);
    ack.closed = true;
    board_.PostAck(*Uuid::FromBytes(close.writer()), std::move(ack));
  }
  if (already) return;
  CheckedChunk checked = NewChunk(*session);
  checked.writer = *Uuid::FromBytes(close.writer());
  checked.first_sequence = next_sequence;
  checked.last_sequence = next_sequence - 1;
  checked.closing = close.died() ? WriterState::kDied : WriterState::kClosed;
  Enqueue(*session, std::move(checked));
}

void IngestStream::AwaitRoom() {
  const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !end_status_.ok() || inflight_bytes_ < kInflightBytesMax;
  };
  board_.WaitForRoom(absl::InfiniteFuture());
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&has_room));
}

void IngestStream::Enqueue(IngestSession& session, CheckedChunk chunk) {
  chunk.bytes = static_cast<std::int64_t>(chunk.journal_entry.size()) + chunk.decoded.bytes +
                kChunkOverheadBytes;
  {
    absl::MutexLock lock(&mu_);
    if (!end_status_.ok()) return;
    session.Queued(chunk.bytes);
    inflight_bytes_ += chunk.bytes;
    ++inflight_count_;
  }
  // Blocks while the queue is full: this stream is not read meanwhile.
  while (!ended()) {
    const absl::Status queued = context_.queue.Add(chunk, absl::Now() + absl::Seconds(1));
    if (queued.ok()) return;
    if (queued.code() != absl::StatusCode::kResourceExhausted) {
      return End(absl::UnavailableError("this master is stopping"));
    }
  }
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
    context_.on_close(chunk.trial_id);
  }
  if (current) {
    ack.credit_bytes = context_.Credit();
    ack.closed = chunk.closing.has_value();
    if (chunk.rejected) ack.rejections.push_back(MakeRejection(chunk));
    board_.PostAck(chunk.writer, std::move(ack));
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
  {
    absl::MutexLock lock(&mu_);
    const auto place = sessions_.find(writer);
    if (place == sessions_.end() || place->second->generation() != generation) return;
    if (place->second->state() == IngestSession::State::kFenced) return;
    place->second->Fenced();
  }
  PostRefused(writer.ToBytes(),
              {absl::StatusCode::kAborted, "FENCED", "another stream has opened this writer since"},
              true);
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
    board_.PostAck(writer, std::move(ack));
  }
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

bool IngestStream::WaitSettled(absl::Time deadline) {
  const auto is_settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return inflight_count_ == 0 || !end_status_.ok();
  };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithDeadline(absl::Condition(&is_settled), deadline) && end_status_.ok();
}

void IngestStream::PostRefused(const std::string& writer, const Complaint& complaint, bool terminal,
                               std::uint64_t expected_sequence) {
  // Hostile clients get one answer each and are slowed down when they do not read it.
  board_.WaitForRoom(absl::InfiniteFuture());
  board_.Post(MakeRefused(writer, complaint, terminal, expected_sequence));
}

AckBoard::Ack IngestStream::AckOf(const IngestSession& session) const {
  AckBoard::Ack ack;
  ack.credit_bytes = context_.Credit();
  absl::MutexLock lock(&mu_);
  ack.committed_sequence = session.committed_sequence();
  return ack;
}

}  // namespace stepwell
