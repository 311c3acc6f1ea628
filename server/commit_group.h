// CommitGroup gathers checked chunks, to be written in one database transaction. It stands between
// IngestStream (many threads) and GroupCommitter (one). Thread-safe.
//
//   queue.Add(std::move(chunk), deadline);   // streams
//   CommitGroup group = queue.Take();        // the committer; blocks
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "base/uuid.h"
#include "server/chunk_check.h"
#include "storage/ingest_store.h"

namespace stepwell {

class CommitListener;  // told what became of a chunk; see group_committer.h

// One sequence range of one writer, ready to be stored.
struct CheckedChunk {
  std::shared_ptr<CommitListener> listener;  // its stream
  Uuid writer;
  TrialId trial_id{};
  WriterNo writer_no{};
  std::int32_t attempt = 0;
  std::uint64_t generation = 0;
  // An entry that only closes has last_sequence = first_sequence - 1.
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::uint32_t crc32c = 0;
  std::string journal_entry;
  DecodedChunk decoded;
  std::vector<Gap> gaps;
  std::optional<Rejected> rejected;
  std::optional<WriterState> closing;
  // What it takes of the queue.
  std::int64_t bytes = 0;
  // It was set aside: it is a group by itself until it is stored.
  bool is_alone = false;
  // When its stream had checked it.
  SteadyTime checked_time;
  // When it was queued; set by CommitQueue.
  SteadyTime queued_time;
};

class CommitQueue {
 public:
  struct Options {
    std::size_t chunk_count_max = 2048;
    std::int64_t group_bytes_max = 8 << 20;
    // A group of more than so many chunks has so many bytes at most: what a transaction costs beside its rows is much where
    // chunks are of a few samples, and little where they are of a thousand.
    std::size_t few_count = 256;
    std::int64_t many_bytes_max = 2 << 20;
    // A group has so many gaps at most, or one chunk: what is stored of its writer is looked up for each. As many as
    // chunks, so that a crowd of writers that tells one each is no more groups.
    std::size_t gap_count_max = 2048;
    std::int64_t queue_bytes_max = 64 << 20;
    // How long its oldest chunk waits for company when the connection is idle; 0 = not at all.
    absl::Duration linger = absl::ZeroDuration();
  };
  explicit CommitQueue(Options options) : options_(options) {}

  // Room for a chunk that is still to be decoded; given back when it goes. The queue outlives it.
  class Place {
   public:
    Place() : Place(nullptr, 0) {}
    Place(Place&& other) noexcept
        : queue_(std::exchange(other.queue_, nullptr)), bytes_(other.bytes_) {}
    Place& operator=(Place&& other) noexcept {
      Place taken(std::move(other));
      std::swap(queue_, taken.queue_);
      std::swap(bytes_, taken.bytes_);
      return *this;
    }
    ~Place() {
      if (queue_ != nullptr) queue_->GiveBack(bytes_);
    }

   private:
    friend class CommitQueue;
    Place(CommitQueue* queue, std::int64_t bytes) : queue_(queue), bytes_(bytes) {}
    CommitQueue* queue_;
    std::int64_t bytes_;
  };
  // Blocks until `deadline` while the queue, with others' places, is full, then kResourceExhausted, and kUnavailable
  // once closed. Goes beyond what is full by one place, never by one of each stream.
  absl::StatusOr<Place> Hold(std::int64_t bytes, SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes `chunk` over, in `place` where that is one. Else blocks until `deadline` while full, then
  // kResourceExhausted, and kUnavailable once closed: `chunk` is left as it was. Order of one caller is kept.
  // Does not wait for the commit.
  absl::Status Add(CheckedChunk& chunk, SteadyTime deadline, Place* place = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The oldest chunks that fit a group, `count_max` at most; blocks until there are some, or `deadline`, or Close:
  // then empty. Per trial and writer the sequences of a group are contiguous and of one generation.
  std::vector<CheckedChunk> Take(SteadyTime deadline,
                                 std::size_t count_max = std::numeric_limits<std::size_t>::max())
      ABSL_LOCKS_EXCLUDED(mu_);
  // What Take gave last, and could not be stored: the next Take begins with it.
  void PutBack(std::vector<CheckedChunk> chunks) ABSL_LOCKS_EXCLUDED(mu_);
  // As PutBack, of one that cannot be stored by itself. Take leaves out its trial, for what holds it up (a lock on the
  // trial's row) as a rule holds up all of it: until `rest_end`, once others had a group since, or where nobody else sends
  // anything. Then it comes first, and alone; one trial at a time, and others' next group comes between two.
  void SetAside(CheckedChunk chunk, SteadyTime rest_end) ABSL_LOCKS_EXCLUDED(mu_);

  // No rest is needed any more: what rests is tried as soon as others had a group.
  void EndRests() ABSL_LOCKS_EXCLUDED(mu_);

  // Drops all that waits: ownership was lost.
  std::vector<CheckedChunk> Clear() ABSL_LOCKS_EXCLUDED(mu_);
  // Add refuses from now on; Take hands out the rest.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  std::int64_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  std::int64_t bytes_max() const { return options_.queue_bytes_max; }

 private:
  void GiveBack(std::int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // No chunk need wait for company any more.
  bool GroupFullLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // What a group holds so far.
  struct Load {
    std::size_t chunk_count = 0;
    std::int64_t bytes = 0;
    std::size_t gap_count = 0;
  };
  bool HasRoom(const Load& load, const CheckedChunk& chunk) const;
  std::vector<CheckedChunk> CutLocked(std::size_t count_max) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool RestIsOverLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Of the trial that rests longest.
  void EndRestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  mutable absl::Mutex mu_;
  std::deque<CheckedChunk> pending_ ABSL_GUARDED_BY(mu_);
  // Of trials that rest, in their order; they count as pending.
  std::deque<CheckedChunk> aside_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<TrialId> resting_ ABSL_GUARDED_BY(mu_);
  SteadyTime rest_end_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
  // Since one was set aside, or its rest ended.
  bool others_came_ ABSL_GUARDED_BY(mu_) = false;
  std::int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::int64_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// The request that stores `chunks`, and which of its advances each chunk belongs to.
struct CommitGroup {
  CommitGroupRequest request;
  std::vector<std::size_t> advance_of;  // one per chunk
};
// REQUIRES: chunks as CommitQueue::Take gives them.
CommitGroup BuildGroup(const std::vector<CheckedChunk>& chunks, std::int64_t owner_epoch,
                       std::int64_t received_time_us);

}  // namespace stepwell
