// WriterRegistry: which stream holds which writer open, and when each was last heard of. It fences
// the older stream of a writer, ends all streams when ownership is lost, and says from memory what
// WriterLiveness is asked. Of a trial it keeps all writers until it has ended, kWritersPerTrialMax at most.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "server/trial_state.h"
#include "server/writer_liveness.h"
#include "storage/ingest_store.h"

namespace stepwell {

class IngestStream;

class WriterRegistry final : public WriterLiveness {
 public:
  // `clock` outlives this.
  explicit WriterRegistry(const Clock& clock) : clock_(clock) {}

  // Streams that are open, so that they can be ended.
  void AddStream(const std::shared_ptr<IngestStream>& stream) ABSL_LOCKS_EXCLUDED(mu_);
  void RemoveStream(const IngestStream* stream) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `act` for each stream open now, without a lock held.
  void ForEachStream(const std::function<void(IngestStream&)>& act) ABSL_LOCKS_EXCLUDED(mu_);
  std::size_t stream_count() const ABSL_LOCKS_EXCLUDED(mu_);

  // `stream` holds the writer under its generation from now on; the stream that held an older one
  // is fenced. A UUID alone names nobody: the same one in another trial is another writer. False when a newer generation already lives: `stream` itself is the older one.
  bool Claim(const Uuid& writer, const OpenedWriter& opened,
             const std::shared_ptr<IngestStream>& stream) ABSL_LOCKS_EXCLUDED(mu_);
  // The stream is gone or the writer closed; others' claims stay.
  void Release(TrialId trial_id, WriterNo writer_no, std::uint64_t generation)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::size_t open_count() const ABSL_LOCKS_EXCLUDED(mu_);

  // A writer was just told that it has no credit: whoever waits for some must hear when there is, though the reason may be
  // gone before anybody looks.
  void NoteStopped() { stopped_ = true; }
  // Whether one was, since this was asked before.
  bool TakeStopped() { return stopped_.exchange(false); }

  // News of a writer: a chunk, a heartbeat; a Close that was committed.
  void Heard(TrialId trial_id, WriterNo writer_no) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteState(TrialId trial_id, WriterNo writer_no, WriterState state) ABSL_LOCKS_EXCLUDED(mu_);
  // What a take-over read: silence counts from now on, but nothing was heard of the writer.
  void NoteStored(TrialId trial_id, WriterNo writer_no, WriterState state) ABSL_LOCKS_EXCLUDED(mu_);
  // As in WriterSeen; long past = unknown.
  SteadyTime HeardAt(TrialId trial_id, WriterNo writer_no) const ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] std::map<WriterNo, WriterSeen> Seen(TrialId trial_id) const override
      ABSL_LOCKS_EXCLUDED(mu_);

  // Those of which a writer is known, for their states.
  std::vector<TrialId> Trials() const ABSL_LOCKS_EXCLUDED(mu_);
  // What is known of the writers of one; none = the trial was forgotten, or dropped.
  std::vector<WriterFact> FactsOf(TrialId trial_id) const ABSL_LOCKS_EXCLUDED(mu_);
  // Ended and stored: no longer of interest, until a writer of it opens again.
  void ForgetTrial(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  // It is deleted: none of its writers comes again, also of those that never closed.
  void DropTrial(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::pair<TrialId, WriterNo>;
  struct Holder {
    std::uint64_t generation = 0;
    std::weak_ptr<IngestStream> stream;
  };
  struct Known {
    WriterFact fact;
    std::int64_t seen_time_us = 0;  // when it was heard of, for people; 0 = not yet
    int holders = 0;
  };

  void NoteLocked(Known& known, WriterState state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  std::atomic<bool> stopped_ = false;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<const IngestStream*, std::weak_ptr<IngestStream>> streams_
      ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Key, Holder> holders_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<TrialId, std::map<WriterNo, Known>> trials_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
