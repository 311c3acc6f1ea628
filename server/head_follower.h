// HeadFollower: one call that follows a trial, as heads see it. While it lives its trial stays in heads.
// It holds no chunk and no position: see follow_log.h for what makes a number enough. Confined to one
// thread; `heads` outlives it.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto follower, HeadFollower::Start(heads, trial_id, lookback));
//   const std::uint64_t seen = follower->version();
//   HeadFollower::Taken taken = follower->Take(index);     // never waits
//   follower->WaitPast(seen, deadline);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "server/follow_signal.h"
#include "server/heads.h"

namespace stepwell {

class HeadFollower {
 public:
  // kUnavailable: heads are not whole (a standby, a take-over, the trial's replay), or the end has come.
  static absl::StatusOr<std::unique_ptr<HeadFollower>> Start(Heads& heads, TrialId trial_id,
                                                             absl::Duration lookback);
  ~HeadFollower();

  TrialId trial_id() const { return trial_id_; }
  // Which log the indexes are of.
  std::uint64_t log_id() const { return log_id_; }
  // What was acked within `lookback` before Start, and all later, begins there.
  std::uint64_t start_index() const { return start_index_; }
  // The same moment.
  std::int64_t start_time_us() const { return start_time_us_; }

  // Where one writer stands, all at one moment.
  struct Stand {
    WriterNo writer_no{};
    std::uint64_t gone_sequence = 0;    // newest that is not in the log
    std::uint64_t index_sequence = 0;   // newest before the index asked for
    std::uint64_t newest_sequence = 0;  // newest acked
  };
  struct Stands {
    bool ended = false;
    std::uint64_t begin_index = 0;
    // By number. Writers that are missing have added nothing since Start.
    std::vector<Stand> writers;
    // There may be samples that were folded before heads began to note what leaves.
    bool has_older = false;
    std::int64_t whole_since_us = 0;
  };
  Stands StandsAt(std::uint64_t index) const;

  enum class Outcome { kTaken, kGone, kEnded };
  struct Taken {
    Outcome outcome = Outcome::kTaken;
    std::vector<HeadChunkPtr> chunks;
    std::uint64_t next_index = 0;
    // There are chunks beyond next_index.
    bool more = false;
    // kGone: where the log begins.
    std::uint64_t begin_index = 0;
  };
  // Chunks from `index` on, of about `sample_count_max` samples, at least one where there is one. kEnded:
  // heads were cleared, or all was taken and the master stops.
  Taken Take(std::uint64_t index, std::int64_t sample_count_max) const;
  // As in FollowLog.
  std::int64_t OldestGone(std::uint64_t index) const;
  std::int64_t OldestGoneSince(std::int64_t received_time_us) const;
  std::int64_t OldestFrom(std::uint64_t index) const;

  std::uint64_t version() const { return signal_->version(); }
  void WaitPast(std::uint64_t seen, SteadyTime deadline) { signal_->WaitPast(seen, deadline); }

 private:
  HeadFollower(Heads& heads, TrialId trial_id) : heads_(heads), trial_id_(trial_id) {}
  // Null when heads were cleared since.
  Heads::TrialHead* TrialLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(heads_.mu_);

  Heads& heads_;
  const TrialId trial_id_;
  std::uint64_t log_id_ = 0;
  std::uint64_t start_index_ = 0;
  std::int64_t start_time_us_ = 0;
  std::shared_ptr<FollowSignal> signal_;
};

}  // namespace stepwell
