// What IngestStream does with sequences: chunks, and ranges that will never come.
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "server/chunk_check.h"
#include "server/credit_plan.h"
#include "server/ingest_answers.h"
#include "server/ingest_stream.h"
#include "server/journal_codec.h"

namespace stepwell {
namespace {

// A client that sends beyond its credit is not read any further.
constexpr std::int64_t kInflightBytesMax = 4 * kCreditBytesMax;
// Beside its bytes, what a chunk costs in the queue.
constexpr std::int64_t kChunkOverheadBytes = 512;
// Smaller ones are decoded at once: what one for each stream takes is little.
constexpr std::size_t kLargeBodyBytes = 16 << 10;
// What a body becomes, its journal entry with it, of doubles in one column; of others it may be more or less.
constexpr std::int64_t kDecodedPerBodyByte = 3;

// A loss of four bytes on the wire is a Gap of over a hundred.
std::int64_t BytesOf(const std::vector<Gap>& gaps) {
  std::size_t bytes = gaps.capacity() * sizeof(Gap);
  for (const Gap& gap : gaps) bytes += gap.metric_group.size() + gap.reason.size();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

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
      if (last <= committed) PostAck(*Uuid::FromBytes(writer), AckOf(session));
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
  IngestSession* session = FindSession(chunk.writer(), chunk);
  if (session == nullptr) return;
  // Before it is looked at: what is refused was read as well.
  if (!AwaitBytes(chunk.writer(), *session, chunk.ByteSizeLong())) return;
  if (auto complaint = CheckChunkFrame(chunk))
    return PostRefused(chunk.writer(), *complaint, false);
  AwaitInflight();
  std::uint64_t from = 0;
  if (!TakeRange(chunk.writer(), *session, chunk.sequence(), chunk.sequence(), from)) return;
  std::optional<ChunkContent> awaited = AwaitContent(chunk, *session);
  if (!awaited) return;
  ChunkContent& content = *awaited;
  CheckedChunk checked = NewChunk(*session);
  checked.writer = *Uuid::FromBytes(chunk.writer());
  checked.first_sequence = chunk.sequence();
  checked.last_sequence = chunk.sequence();
  checked.crc32c = chunk.crc32c();
  AppendJournalEntry({.first_sequence = chunk.sequence(),
                      .last_sequence = chunk.sequence(),
                      .attempt = session->attempt(),
                      .sealed_time_us = chunk.sealed_time_us(),
                      .has_body = !content.whole_rejected},
                     content.decoded.tables, checked.journal_entry, scratch_.journal());
  scratch_.KeepLittle();
  checked.decoded = std::move(content.decoded);
  checked.gaps = std::move(content.gaps);
  checked.rejected = std::move(content.rejected);
  Enqueue(*session, std::move(checked));
}

std::optional<ChunkContent> IngestStream::AwaitContent(const pb::Chunk& chunk,
                                                       IngestSession& session) {
  for (bool is_paid = false;;) {
    if (!AwaitPlace(chunk.body().size())) return std::nullopt;
    ChunkContent content = CheckChunkContent(chunk, session.refs(), session.writer_no(), scratch_);
    const std::int64_t sample_count = content.decoded.sample_count;
    if (is_paid || TryTakeSamples(session, sample_count)) return content;
    // It is decoded again behind the wait: what it becomes may be many times its bytes, of each stream.
    content = {};
    queue_place_ = {};
    if (!AwaitAllowanceOf(chunk.writer(), session, RateKind::kIngestSamples,
                          static_cast<double>(sample_count))) {
      return std::nullopt;
    }
    is_paid = true;
  }
}

void IngestStream::HandleGap(const pb::GapRange& range) {
  IngestSession* session = FindSession(range.writer(), range);
  if (session == nullptr) return;
  if (!AwaitBytes(range.writer(), *session, range.ByteSizeLong())) return;
  Gap gap;
  if (auto complaint = CheckGapRange(range, session->writer_no(), gap)) {
    return PostRefused(range.writer(), *complaint, false);
  }
  AwaitInflight();
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
                     {}, checked.journal_entry);
  Enqueue(*session, std::move(checked));
}

bool IngestStream::HasRoomInflightLocked() const {
  return !end_status_.ok() || inflight_bytes_ < kInflightBytesMax;
}

void IngestStream::AwaitInflight() {
  {
    absl::MutexLock lock(&mu_);
    if (HasRoomInflightLocked()) return;
  }
  if (before_wait_) std::exchange(before_wait_, nullptr)();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &IngestStream::HasRoomInflightLocked));
}

bool IngestStream::AwaitPlace(std::size_t body_bytes) {
  if (body_bytes < kLargeBodyBytes) return true;
  const std::int64_t bytes = kDecodedPerBodyByte * static_cast<std::int64_t>(body_bytes);
  while (!ended()) {
    auto place = context_.queue.Hold(bytes, SteadyTime::Now() + absl::Seconds(1));
    if (place.ok()) {
      queue_place_ = *std::move(place);
      return true;
    }
    if (place.status().code() != absl::StatusCode::kResourceExhausted) return false;
  }
  return false;
}

void IngestStream::Enqueue(IngestSession& session, CheckedChunk chunk) {
  CommitQueue::Place place = std::move(queue_place_);
  chunk.checked_time = SteadyTime::Now();
  chunk.bytes = static_cast<std::int64_t>(chunk.journal_entry.size()) + chunk.decoded.bytes +
                BytesOf(chunk.gaps) + kChunkOverheadBytes;
  {
    absl::MutexLock lock(&mu_);
    if (!end_status_.ok() || session.state() == IngestSession::State::kFenced) return;
    session.Queued(chunk.bytes);
    inflight_bytes_ += chunk.bytes;
    ++inflight_count_;
  }
  // Blocks while the queue is full: this stream is not read meanwhile.
  while (!ended()) {
    const absl::Status queued =
        context_.queue.Add(chunk, SteadyTime::Now() + absl::Seconds(1), &place);
    if (queued.ok()) return;
    // The master is stopping. It ends this stream itself, once what the queue took before is acked.
    if (queued.code() != absl::StatusCode::kResourceExhausted) return;
  }
}

}  // namespace stepwell
