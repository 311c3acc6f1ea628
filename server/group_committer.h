// GroupCommitter: takes groups from the CommitQueue, stores each in one transaction, and tells what
// became of it. The order is the promise: COMMIT, then heads, then acks. Steps 7 and 8 of a sample's
// line. One thread, "commit".
//
// A database that does not answer is waited for with the same group in hand; the guarded UPDATE of
// the store makes the repeat harmless. Data that the store refuses is narrowed down to the one
// chunk, which is consumed as rejected. One that the store cannot take in its time is narrowed down as well, and kept:
// it is tried again for ever, but other trials' chunks pass between two tries. A lost ownership ends all streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/steady_time.h"
#include "base/worker.h"
#include "server/commit_group.h"
#include "server/heads.h"
#include "server/ingest_stats.h"
#include "server/master_state.h"
#include "server/slow_search.h"

namespace stepwell {

// A stream, as the committer sees it. Called without a lock held; does not block.
class CommitListener {
 public:
  virtual ~CommitListener() = default;
  // The chunk is durable, or already was. Its client is told by TellAcks, once for all that one commit has of this stream.
  virtual void Committed(const CheckedChunk& chunk) = 0;
  virtual void TellAcks() = 0;
  // Another generation of the writer lives.
  virtual void Refenced(const CheckedChunk& chunk) = 0;
  // What was taken from this stream cannot be stored as it came: it must begin again.
  virtual void End(const absl::Status& why) = 0;
};

class GroupCommitter {
 public:
  struct Options {
    // Of a database that is back: within two seconds an agent has its first ack (docs/reliability.md).
    Backoff::Options backoff = {.first = absl::Milliseconds(50),
                                .longest = absl::Milliseconds(500)};
    // Nothing is committed while more than this waits for a fold: memory.
    std::int64_t unfolded_bytes_max = 512 << 20;
    // The trial of a chunk that runs out of time, beside others that do not, lets these pass for so long: three times
    // what a try may take.
    absl::Duration slow_rest = absl::Seconds(30);
  };
  // All outlive this.
  struct Parts {
    IngestStore& store;
    CommitQueue& queue;
    Heads& heads;
    MasterState& state;
    IngestStats& stats;
    const Clock& clock;
  };

  GroupCommitter(Options options, Parts parts);
  ~GroupCommitter();

  void Start();
  // Commits what is queued, then ends; gives up on what the database does not take by `deadline`.
  // Twice is fine.
  void Stop(SteadyTime deadline);

  // One turn of the thread, on the caller's: stores the next group; false where none came until
  // `deadline`. REQUIRES: Start was not called.
  bool CommitNext(SteadyTime deadline);

  // Every chunk with an earlier received_time that was committed before this is in heads. INT64_MAX: nothing is under way.
  std::int64_t settled_before_us() const;

 private:
  void Run();
  // Stores `chunks`; on return each of them was answered, or its stream ended, but for those that it returns: of
  // these nothing is stored, for a group of them ran out of time `tries` times. In their order.
  std::vector<CheckedChunk> Store(std::vector<CheckedChunk> chunks, int tries);
  std::vector<CheckedChunk> StoreHalves(std::vector<CheckedChunk> chunks, int tries);
  std::vector<CheckedChunk> Reject(CheckedChunk chunk, const absl::Status& why, int tries);
  void NoteSlow(std::vector<CheckedChunk> chunks);
  struct Answer {
    std::vector<AdvanceResult> results;
    // An earlier COMMIT of the same group may have taken place.
    bool was_in_doubt = false;
  };
  void Settle(std::vector<CheckedChunk> chunks, const CommitGroup& group, const Answer& answer,
              std::int64_t epoch);
  void EndAll(const std::vector<CheckedChunk>& chunks, const absl::Status& why);
  std::int64_t NextReceivedTime();
  // False when it is time to give up.
  bool WaitBeforeRetry(Backoff& backoff);
  void AwaitFoldRoom();
  bool IsStopping();

  const Options options_;
  Parts parts_;
  std::atomic<std::int64_t> settling_us_{0};  // received_time in work, 0 = none
  std::int64_t last_received_us_ = 0;         // confined to the thread
  SlowSearch search_;                         // so is this
  bool others_stored_ = false;  // so is this: since a search began, or one was set aside
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  SteadyTime give_up_time_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfiniteFuture();
  Worker worker_;
};

}  // namespace stepwell
