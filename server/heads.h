// Heads: what is acked and not yet folded, in memory, the newest value of each series, and for a while
// what was folded, for followers. What a wholly folded trial leaves behind is bounded: the trials longest
// out of use go, rows have it all.
// It stands after the commit (GroupCommitter adds, only after a known COMMIT) and before folds and
// readers. Chunks are immutable once added, so a reader's pin is a copied list of pointers.
// Thread-safe.
//
//   HeadsPin pin = heads.Pin(trial_id);          // first the heads ...
//   store.ReadRows({.fold_no_max = pin.fold_no()}, ...);  // ... then one SQL snapshot
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/fold_gate.h"
#include "server/follow_log.h"
#include "server/follow_signal.h"
#include "server/head_chunk.h"
#include "server/latest_value.h"
#include "storage/fold_store.h"
#include "storage/model.h"

namespace stepwell {

class Heads;

// Keeps merges from moving rows that the reader has not yet told from heads. Movable; releases
// itself. `Heads` outlives it.
class HeadsPin {
 public:
  HeadsPin(HeadsPin&& other) noexcept;
  HeadsPin& operator=(HeadsPin&& other) = delete;
  ~HeadsPin();

  // Rows of later folds hold what chunks() holds too: ignore them. Of one trial it is another one after each
  // fold of that trial, and the same as long as only others are folded. Where heads hold nothing, because this
  // master does not own the database, no fold is later.
  FoldNo fold_no() const { return fold_no_; }
  // Unfolded chunks of the trial, per writer in sequence order.
  const std::vector<HeadChunkPtr>& chunks() const { return chunks_; }
  // The trial's journal is still being replayed, or will be once this master owns the database, or is another
  // master's to replay: the answer says so.
  bool recovering() const { return recovering_; }

 private:
  friend class Heads;
  HeadsPin(Heads* heads, std::optional<FoldGate::Reader> reader, FoldNo newest)
      : reader_(std::move(reader)), heads_(heads), newest_(newest), fold_no_(newest) {}
  std::optional<FoldGate::Reader> reader_;  // none = of every trial
  Heads* heads_;
  FoldNo newest_;  // of all trials
  FoldNo fold_no_;
  std::vector<HeadChunkPtr> chunks_;
  bool recovering_ = false;
};

class Heads {
 public:
  struct Options {
    // For what folded trials leave behind: their newest values, where their writers stand. With the
    // unfolded bytes that start a fold by themselves, half of 64 MiB each.
    std::int64_t kept_bytes_max = 32 << 20;
    // How long chunks stay for followers after they were received, folded or not; folded ones take at
    // most so many bytes, of all trials together, the oldest go first.
    absl::Duration followed_age_max = absl::Seconds(60);
    std::int64_t followed_bytes_max = 64 << 20;
    const Clock* clock = &RealClock::Get();  // outlives this
  };

  Heads() : Heads(Options()) {}
  explicit Heads(Options options);

  // The writer stands at `folded_sequence` in the database. Known ones keep what is known. Before
  // the first Add of a writer.
  void NoteWriter(TrialId trial_id, WriterNo writer_no, std::uint64_t folded_sequence);
  // Chunks of one commit, in order. Only after COMMIT is known. What is already there, or folded,
  // is left out, so that replay and ingest may both bring a chunk. A range of sequences without
  // data comes as a chunk without tables that carries the last of them.
  void Add(const std::vector<HeadChunkPtr>& chunks);

  // Waits while the trial is folded in bulk.
  HeadsPin Pin(TrialId trial_id);
  // Waits for that without pinning, for so long at most; false = it goes on.
  bool AwaitBulk(TrialId trial_id, absl::Duration most) { return gate_.AwaitEnd(trial_id, most); }
  // Of every trial; recovering() says nothing then. For who counts, by the marks of writers: rows of leaves may hold
  // what chunks() holds, too.
  HeadsPin PinAll();
  // The newest value of each series that is in memory. Series that are missing, or whose rows were
  // not asked, must be read from rows, once, and given to NoteLatest. While a pin is held nothing
  // that was folded after it leaves.
  using Latest = std::map<SeriesNo, LatestValue>;
  Latest LatestOf(TrialId trial_id) const;
  // The same by number, for answers that change nothing of it.
  using LatestList = std::vector<std::pair<SeriesNo, LatestValue>>;
  LatestList ListLatest(TrialId trial_id) const;
  // What the rows said of `series_nos`: a value in `stored`, or nothing, which is kept as a value without
  // a sample.
  void NoteLatest(TrialId trial_id, const std::vector<SeriesNo>& series_nos, const Latest& stored);

  // What a fold has to write: every unfolded chunk of `trial_id` (or of all trials), grouped by
  // writer. The pointers keep the tables alive.
  struct FoldPlan {
    std::vector<WriterFold> folds;
    std::vector<HeadChunkPtr> chunks;
    std::int64_t bytes = 0;
    // Everything received before this moment is in the plan (or already folded).
    std::int64_t all_before_us = 0;
    // Of whom something that is acked is not here, nor was replayed: the plan ends before it, for a fold passes what it does
    // not bring, and the journal would let go of it. Some one of them.
    std::optional<std::pair<TrialId, WriterNo>> hole;
  };
  // The newest unfolded sequence of each writer: what a fold that begins now has to reach.
  using FoldTarget = absl::flat_hash_map<std::pair<TrialId, WriterNo>, std::uint64_t>;
  FoldTarget NewestUnfolded(std::optional<TrialId> trial_id) const;
  // Up to `target` where one is given, and what `bytes_max` allows, oldest first per writer.
  FoldPlan PlanFold(std::optional<TrialId> trial_id, std::int64_t bytes_max,
                    const FoldTarget* target = nullptr) const;
  // After the fold's COMMIT is known: drops what it wrote and publishes its number, at once.
  void Folded(const std::vector<WriterFold>& folds, FoldNo fold_no);
  // Around FoldStore::FoldBulk: false where somebody has pinned the trial, or waits to. In between pins wait. It
  // ends after Folded, or where nothing is stored; where nobody knows, heads are cleared, which ends it, too.
  bool BeginBulk(TrialId trial_id) { return gate_.Begin(trial_id); }
  void EndBulk(TrialId trial_id) { gate_.End(trial_id); }
  // Lets go of what followers had long enough; Folded does so, too.
  void DropOldFollowed();

  // Folds up to this one may be merged: the smallest pin, or the newest fold.
  FoldNo MergeableFoldNo() const;
  std::int64_t unfolded_bytes() const;
  // About what trials and newest values take beside the chunks. O(1).
  std::int64_t kept_bytes() const;
  // Folded chunks that are kept for followers. O(1).
  std::int64_t followed_bytes() const;
  // Samples of the trial in unfolded chunks.
  std::int64_t UnfoldedSampleCount(TrialId trial_id) const;
  // Whether the trial's journal is still being replayed.
  bool Recovering(TrialId trial_id) const;

  // Recovery: from Start until Done answers say `recovering`. A fresh master starts with the
  // number that Folded would publish. All writers were noted before: from Start on the others are whole.
  void RecoveryStarted(const std::vector<TrialId>& trials, FoldNo fold_no);
  void RecoveryDone(TrialId trial_id);
  // Ownership was lost or a COMMIT's outcome cannot be known: forget everything. Ends all followers.
  void Clear();
  // Nothing more is acked: followers end when they have taken all that there is.
  void EndFollows();

 private:
  friend class HeadsPin;
  friend class HeadFollower;
  void Unpin(FoldNo fold_no);

  struct WriterHead {
    std::uint64_t folded_sequence = 0;
    // Newest that is not in the trial's log any more, or never was.
    std::uint64_t gone_sequence = 0;
    // What a replay did not bring up to here, no other brings.
    std::uint64_t replayed_sequence = 0;
    std::vector<HeadChunkPtr> chunks;
  };
  struct TrialHead {
    std::map<WriterNo, WriterHead> writers;
    Latest latest;
    bool recovering = false;
    FoldNo folded_no{};          // of its last fold, or a later one from before it came
    std::uint64_t last_use = 0;  // by use_count_
    // For followers, see follow_log.h. Both may be null.
    std::unique_ptr<FollowLog> log = nullptr;
    std::shared_ptr<FollowSignal> signal = nullptr;
    int follower_count = 0;
    // Some of its samples were folded before the log began.
    bool has_older = false;
  };
  using Signals = std::vector<std::shared_ptr<FollowSignal>>;

  static std::int64_t KeptBytesOf(const TrialHead& trial);
  TrialHead& UseLocked(TrialId trial_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  WriterHead& WriterOfLocked(TrialHead& trial, const HeadChunk& chunk)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepNewerLocked(TrialHead& trial, SeriesNo series_no, const LatestValue& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  FollowLog& LogOfLocked(TrialHead& trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the oldest entry of the trial's log to `dropped`, which is freed outside of the lock.
  void PopFollowedLocked(TrialHead& trial, std::vector<HeadChunkPtr>& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropFollowedLocked(std::int64_t now_us, std::vector<HeadChunkPtr>& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropFollowedOverLocked(std::vector<HeadChunkPtr>& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The trial leaves heads, its log with it.
  void LeaveLogLocked(TrialId trial_id, const TrialHead& trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Its oldest followed chunk is folded.
  bool FrontFoldedLocked(const TrialHead& trial) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  Signals SignalsLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Rows alone answer for the trial, also to every pin that is held.
  bool MayLeaveLocked(const TrialHead& trial) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Down to three quarters of the bound, so that it is not done for each trial. O(trials) then.
  void EvictLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  FoldGate gate_;  // entered before mu_ is taken
  mutable absl::Mutex mu_;
  absl::flat_hash_map<TrialId, TrialHead> trials_ ABSL_GUARDED_BY(mu_);
  std::map<FoldNo, int> pins_ ABSL_GUARDED_BY(mu_);
  FoldNo fold_no_ ABSL_GUARDED_BY(mu_){};
  // No trial that is not here was folded later.
  FoldNo others_folded_no_ ABSL_GUARDED_BY(mu_){};
  std::int64_t unfolded_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::int64_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::uint64_t use_count_ ABSL_GUARDED_BY(mu_) = 0;
  // Of followers: trials whose log is not empty; the sum over folded chunks in logs; the next log's id.
  absl::flat_hash_set<TrialId> logged_ ABSL_GUARDED_BY(mu_);
  std::int64_t followed_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::uint64_t next_log_id_ ABSL_GUARDED_BY(mu_);
  // All that is acked is here (or will be, when its trial is recovered); since then all that left is noted.
  bool whole_ ABSL_GUARDED_BY(mu_) = false;
  std::int64_t whole_since_us_ ABSL_GUARDED_BY(mu_) = 0;
  bool follows_ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace stepwell
