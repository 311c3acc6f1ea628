#include "server/group_committer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "server/journal_codec.h"
#include "server/limits.h"
#include "server/text_check.h"
#include "server/told_error.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

// Acks are promised within 50 ms; well beyond, someone should look at the database's disk.
constexpr absl::Duration kSlowCommit = absl::Milliseconds(250);
// A database may be away for a night, and is tried each half second.
constexpr absl::Duration kTellAgain = absl::Seconds(10);

HeadChunkPtr MakeHead(CheckedChunk& chunk, std::int64_t received_time_us) {
  auto head = std::make_shared<HeadChunk>();
  head->trial_id = chunk.trial_id;
  head->writer_no = chunk.writer_no;
  head->attempt = chunk.attempt;
  head->sequence = chunk.last_sequence;
  head->first_sequence = chunk.first_sequence;
  head->received_time_us = received_time_us;
  head->sample_count = chunk.decoded.sample_count;
  head->bytes = chunk.decoded.bytes + static_cast<std::int64_t>(sizeof(HeadChunk));
  head->tables = std::move(chunk.decoded.tables);
  return head;
}

bool HasSequences(const CheckedChunk& chunk) { return chunk.last_sequence >= chunk.first_sequence; }

void CountMissing(const CheckedChunk& chunk, IngestStats& stats) {
  if (!chunk.gaps.empty()) stats.missing.AddGaps(chunk.gaps);
  if (!chunk.rejected) return;
  ++stats.chunks_rejected;
  stats.missing.AddRejected(chunk.rejected->complaint.reason, chunk.rejected->sample_count);
}

// Whether the database holds what `advance` brought. A repeat here is our own commit whose answer was
// lost: streams sort out all others. Where that answer stayed away until the writer was opened again, the
// repeat is fenced; but nobody else commits in this epoch, so what is there up to its end is ours. Left
// out of heads, the next fold would pass it.
bool IsStored(const WriterAdvance& advance, const AdvanceResult& result, bool was_in_doubt) {
  switch (result.outcome) {
    case AdvanceOutcome::kCommitted:
    case AdvanceOutcome::kRepeat:
      return true;
    case AdvanceOutcome::kFenced:
      return was_in_doubt && result.committed_sequence >= advance.last_sequence;
    case AdvanceOutcome::kMismatch:
      return false;
  }
  return false;
}

}  // namespace

GroupCommitter::GroupCommitter(Options options, Parts parts) : options_(options), parts_(parts) {}

GroupCommitter::~GroupCommitter() { Stop(SteadyTime::InfinitePast()); }

void GroupCommitter::Start() {
  worker_ = Worker("commit", [this] { Run(); });
}

void GroupCommitter::Stop(SteadyTime deadline) {
  // First: whoever sees that it is time to stop finds all that is left in the queue.
  parts_.queue.Close();
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    give_up_time_ = std::min(give_up_time_, deadline);
  }
  worker_.Join();
}

std::int64_t GroupCommitter::settled_before_us() const {
  // By no clock: set back by hours it would stand before all that was committed, and nothing of the journal would be
  // recycled for as long. What begins after this look is in the ring's current segment, which is not.
  const std::int64_t settling_us = settling_us_.load(std::memory_order_acquire);
  return settling_us == 0 ? std::numeric_limits<std::int64_t>::max() : settling_us;
}

void GroupCommitter::Run() {
  while (true) {
    AwaitFoldRoom();
    const bool is_last = IsStopping();
    if (CommitNext(SteadyTime::Now() + absl::Milliseconds(500))) continue;
    if (is_last) return;
  }
}

bool GroupCommitter::CommitNext(SteadyTime deadline) {
  std::vector<CheckedChunk> chunks = parts_.queue.Take(deadline, search_.count_max());
  if (chunks.empty()) return false;
  const bool is_alone = chunks.front().is_alone;
  const std::size_t count = chunks.size();
  std::vector<CheckedChunk> slow = Store(std::move(chunks), is_alone ? 1 : search_.tries());
  if (!slow.empty()) {
    NoteSlow(std::move(slow));
  } else if (is_alone) {
    parts_.queue.EndRests();
  } else {
    search_.Stored(count);
    others_stored_ = true;
  }
  return true;
}

void GroupCommitter::NoteSlow(std::vector<CheckedChunk> chunks) {
  CheckedChunk& first = chunks.front();
  if (!search_.is_on() && !first.is_alone) others_stored_ = false;
  if (!first.is_alone && !search_.TimedOut(chunks.size())) {
    parts_.queue.PutBack(std::move(chunks));
    return;
  }
  log::Warning("chunk_too_slow", {{"trial", Value(first.trial_id)},
                                  {"writer", first.writer.ToText()},
                                  {"sequence", first.first_sequence},
                                  {"gaps", first.gaps.size()},
                                  {"bytes", first.bytes}});
  // Where nobody passed either it is perhaps the database that is slow: no time to rest.
  const absl::Duration rest = others_stored_ ? options_.slow_rest : absl::ZeroDuration();
  others_stored_ = false;
  parts_.queue.SetAside(std::move(first), SteadyTime::Now() + rest);
}

bool GroupCommitter::IsStopping() {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

void GroupCommitter::AwaitFoldRoom() {
  while (parts_.heads.unfolded_bytes() > options_.unfolded_bytes_max) {
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(&stopping_), absl::Milliseconds(20));
    if (stopping_) return;
  }
}

std::int64_t GroupCommitter::NextReceivedTime() {
  // Never back: what is folded is told by this time. Published before it is used.
  last_received_us_ = std::max(last_received_us_ + 1, absl::ToUnixMicros(parts_.clock.Now()));
  settling_us_.store(last_received_us_, std::memory_order_release);
  return last_received_us_;
}

bool GroupCommitter::WaitBeforeRetry(Backoff& backoff) {
  absl::MutexLock lock(&mu_);
  const SteadyTime deadline = std::min(SteadyTime::Now() + backoff.NextDelay(), give_up_time_);
  mu_.AwaitWithTimeout(absl::Condition(&stopping_), deadline.Left());
  return !give_up_time_.HasPassed();
}

std::vector<CheckedChunk> GroupCommitter::Store(std::vector<CheckedChunk> chunks, int tries) {
  const std::int64_t epoch = parts_.state.epoch();
  if (epoch == 0) {
    EndAll(chunks, absl::UnavailableError("not the owner of the database"));
    return {};
  }
  std::vector<CheckedChunk> slow;
  const CommitGroup group = BuildGroup(chunks, epoch, NextReceivedTime());
  Backoff backoff(options_.backoff);
  bool in_doubt = false;
  std::string told_words;
  SteadyTime tell_again = SteadyTime::InfinitePast();
  while (true) {
    absl::Status failed = failpoint::Check("before_commit");
    if (failed.ok()) {
      const absl::Duration begin = parts_.clock.Monotonic();
      auto results = parts_.store.Commit(group.request);
      parts_.stats.commits_in_doubt = parts_.store.commits_in_doubt();
      const absl::Duration took = parts_.clock.Monotonic() - begin;
      if (took > kSlowCommit) {
        log::Warning("commit_slow",
                     {{"chunks", chunks.size()}, {"took_ms", absl::ToInt64Milliseconds(took)}});
      }
      if (results.ok()) {
        parts_.stats.commit_duration.Observe(took);
        parts_.state.SetDatabase(absl::OkStatus());
        Settle(std::move(chunks), group, {*std::move(results), in_doubt}, epoch);
        break;
      }
      failed = results.status();
      in_doubt = in_doubt || IsCommitUnknown(failed);
    }
    if (failed.code() == absl::StatusCode::kAborted) {
      parts_.state.ReportLost(epoch);
      EndAll(chunks, absl::UnavailableError("another master owns the database now"));
      break;
    }
    if (failed.code() == absl::StatusCode::kInvalidArgument) {
      slow = chunks.size() > 1 ? StoreHalves(std::move(chunks), tries)
                               : Reject(std::move(chunks.front()), failed, tries);
      break;
    }
    // Its words once, and again where they are others or it lasts.
    if (std::string words = failed.ToString(); words != told_words || tell_again.HasPassed()) {
      log::Warning("commit_failed", {{"chunks", chunks.size()}, {"status", words}});
      told_words = std::move(words);
      tell_again = SteadyTime::Now() + kTellAgain;
    }
    parts_.state.SetDatabase(failed);
    if (!WaitBeforeRetry(backoff) || parts_.state.epoch() != epoch) {
      EndAll(chunks, absl::UnavailableError("the database does not answer"));
      break;
    }
    // Where an earlier COMMIT may have taken place, it is these together that are asked for.
    if (absl::IsDeadlineExceeded(failed) && !in_doubt && --tries <= 0) {
      slow = std::move(chunks);
      break;
    }
  }
  settling_us_.store(0, std::memory_order_release);
  return slow;
}

std::vector<CheckedChunk> GroupCommitter::StoreHalves(std::vector<CheckedChunk> chunks, int tries) {
  const auto middle = chunks.begin() + static_cast<std::ptrdiff_t>(chunks.size() / 2);
  std::vector<CheckedChunk> rest(std::make_move_iterator(middle),
                                 std::make_move_iterator(chunks.end()));
  chunks.erase(middle, chunks.end());
  std::vector<CheckedChunk> slow = Store(std::move(chunks), tries);
  if (slow.empty()) return Store(std::move(rest), tries);
  // Of the same writers there may be some in both.
  slow.insert(slow.end(), std::make_move_iterator(rest.begin()),
              std::make_move_iterator(rest.end()));
  return slow;
}

std::vector<CheckedChunk> GroupCommitter::Reject(CheckedChunk chunk, const absl::Status& why,
                                                 int tries) {
  log::Error("chunk_refused_by_database", {{"trial", Value(chunk.trial_id)},
                                           {"writer", chunk.writer.ToText()},
                                           {"sequence", chunk.first_sequence},
                                           {"status", why.ToString()}});
  if (chunk.rejected && chunk.rejected->complaint.reason == "REFUSED_BY_DATABASE") {
    // Even without its content: the writer cannot go on here.
    chunk.listener->End(absl::UnavailableError("the database refuses this writer"));
    return {};
  }
  Rejected rejected{Invalid("REFUSED_BY_DATABASE", TellClient(why).message),
                    chunk.decoded.sample_count};
  Gap gap;
  gap.writer_no = chunk.writer_no;
  gap.cause = GapCause::kRejected;
  gap.sample_count = chunk.decoded.sample_count;
  gap.first_sequence = chunk.first_sequence;
  gap.last_sequence = chunk.last_sequence;
  gap.reason = "REFUSED_BY_DATABASE";
  chunk.gaps = {gap};
  chunk.decoded = {};
  chunk.rejected = std::move(rejected);
  chunk.journal_entry.clear();
  AppendJournalEntry({.first_sequence = chunk.first_sequence,
                      .last_sequence = chunk.last_sequence,
                      .attempt = chunk.attempt},
                     {}, chunk.journal_entry);
  std::vector<CheckedChunk> alone;
  alone.push_back(std::move(chunk));
  return Store(std::move(alone), tries);
}

void GroupCommitter::Settle(std::vector<CheckedChunk> chunks, const CommitGroup& group,
                            const Answer& answer, std::int64_t epoch) {
  const std::vector<AdvanceResult>& results = answer.results;
  STEPWELL_CHECK(results.size() == group.request.advances.size());
  std::vector<HeadChunkPtr> heads;
  std::uint64_t sample_count = 0;
  std::uint64_t chunk_count = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::size_t at = group.advance_of[i];
    const bool stored = IsStored(group.request.advances[at], results[at], answer.was_in_doubt);
    if (!stored || !HasSequences(chunks[i])) continue;
    sample_count += static_cast<std::uint64_t>(chunks[i].decoded.sample_count);
    ++chunk_count;
    CountMissing(chunks[i], parts_.stats);
    heads.push_back(MakeHead(chunks[i], group.request.received_time_us));
  }
  parts_.stats.chunks_committed += chunk_count;
  parts_.stats.samples_committed += sample_count;
  ++parts_.stats.commit_groups;
  // Lost meanwhile: the next owner finds all of it in the journal.
  parts_.state.IfOwner(epoch, [&] { parts_.heads.Add(heads); });
  STEPWELL_FAILPOINT("after_commit_before_ack");
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    switch (results[group.advance_of[i]].outcome) {
      case AdvanceOutcome::kCommitted:
      case AdvanceOutcome::kRepeat:
        chunks[i].listener->Committed(chunks[i]);
        break;
      case AdvanceOutcome::kFenced:
        chunks[i].listener->Refenced(chunks[i]);
        break;
      case AdvanceOutcome::kMismatch:
        chunks[i].listener->End(absl::UnavailableError(
            "the database expects another sequence; open the writers again"));
        break;
    }
  }
  absl::flat_hash_set<const CommitListener*> told;
  for (const CheckedChunk& chunk : chunks) {
    if (told.insert(chunk.listener.get()).second) chunk.listener->TellAcks();
  }
}

void GroupCommitter::EndAll(const std::vector<CheckedChunk>& chunks, const absl::Status& why) {
  for (const CheckedChunk& chunk : chunks) chunk.listener->End(why);
}

}  // namespace stepwell
