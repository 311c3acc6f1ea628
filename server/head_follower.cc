#include "server/head_follower.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace stepwell {
namespace {

// Pointers copied under the lock that acks wait for.
constexpr std::size_t kTakeChunksMax = 512;

}  // namespace

absl::StatusOr<std::unique_ptr<HeadFollower>> HeadFollower::Start(Heads& heads, TrialId trial_id,
                                                                  absl::Duration lookback) {
  std::unique_ptr<HeadFollower> follower(new HeadFollower(heads, trial_id));
  follower->start_time_us_ = absl::ToUnixMicros(heads.options_.clock->Now());
  absl::MutexLock lock(&heads.mu_);
  if (!heads.whole_) {
    return absl::UnavailableError(
        "this master does not hold the newest samples: it is a standby, or takes over just now");
  }
  if (heads.follows_ending_) return absl::UnavailableError("this master is stopping");
  Heads::TrialHead& trial = heads.UseLocked(trial_id);
  if (trial.recovering) {
    return absl::UnavailableError("the trial's newest samples are still being read back");
  }
  if (trial.signal == nullptr) trial.signal = std::make_shared<FollowSignal>();
  ++trial.follower_count;
  FollowLog& log = heads.LogOfLocked(trial);
  follower->signal_ = trial.signal;
  follower->log_id_ = log.id();
  follower->start_index_ =
      lookback == absl::ZeroDuration()
          ? log.end_index()
          : log.IndexOf(follower->start_time_us_ - absl::ToInt64Microseconds(lookback));
  return follower;
}

HeadFollower::~HeadFollower() {
  absl::MutexLock lock(&heads_.mu_);
  Heads::TrialHead* trial = TrialLocked();
  if (trial != nullptr && --trial->follower_count == 0) trial->signal.reset();
}

Heads::TrialHead* HeadFollower::TrialLocked() const {
  const auto trial = heads_.trials_.find(trial_id_);
  if (trial == heads_.trials_.end() || trial->second.log == nullptr) return nullptr;
  return trial->second.log->id() == log_id_ ? &trial->second : nullptr;
}

HeadFollower::Stands HeadFollower::StandsAt(std::uint64_t index) const {
  Stands stands;
  absl::MutexLock lock(&heads_.mu_);
  const Heads::TrialHead* trial = TrialLocked();
  if (trial == nullptr) {
    stands.ended = true;
    return stands;
  }
  const FollowLog& log = *trial->log;
  stands.begin_index = log.begin_index();
  stands.has_older = trial->has_older;
  stands.whole_since_us = heads_.whole_since_us_;
  // Nothing to look at where it is the end, as for most.
  absl::flat_hash_map<WriterNo, std::uint64_t> beyond;
  for (std::uint64_t i = std::max(index, log.begin_index()); i < log.end_index(); ++i) {
    const HeadChunkPtr& chunk = log.At(i);
    beyond.emplace(chunk->writer_no, FirstSequence(*chunk) - 1);
  }
  stands.writers.reserve(trial->writers.size());
  for (const auto& [writer_no, writer] : trial->writers) {
    const std::uint64_t newest =
        writer.chunks.empty() ? writer.folded_sequence : writer.chunks.back()->sequence;
    const auto first = beyond.find(writer_no);
    stands.writers.push_back({.writer_no = writer_no,
                              .gone_sequence = writer.gone_sequence,
                              .index_sequence = first == beyond.end() ? newest : first->second,
                              .newest_sequence = newest});
  }
  return stands;
}

HeadFollower::Taken HeadFollower::Take(std::uint64_t index, std::int64_t sample_count_max) const {
  Taken taken;
  taken.next_index = index;
  absl::MutexLock lock(&heads_.mu_);
  const Heads::TrialHead* trial = TrialLocked();
  if (trial == nullptr) {
    taken.outcome = Outcome::kEnded;
    return taken;
  }
  const FollowLog& log = *trial->log;
  taken.begin_index = log.begin_index();
  if (index < log.begin_index()) {
    taken.outcome = Outcome::kGone;
    return taken;
  }
  std::int64_t sample_count = 0;
  while (taken.next_index < log.end_index() && taken.chunks.size() < kTakeChunksMax) {
    const HeadChunkPtr& chunk = log.At(taken.next_index);
    if (!taken.chunks.empty() && sample_count + chunk->sample_count > sample_count_max) break;
    sample_count += chunk->sample_count;
    taken.chunks.push_back(chunk);
    ++taken.next_index;
  }
  taken.more = taken.next_index < log.end_index();
  if (taken.chunks.empty() && heads_.follows_ending_) taken.outcome = Outcome::kEnded;
  return taken;
}

std::int64_t HeadFollower::OldestGone(std::uint64_t index) const {
  absl::MutexLock lock(&heads_.mu_);
  const Heads::TrialHead* trial = TrialLocked();
  return trial == nullptr ? INT64_MAX : trial->log->OldestGone(index);
}

std::int64_t HeadFollower::OldestGoneSince(std::int64_t received_time_us) const {
  absl::MutexLock lock(&heads_.mu_);
  const Heads::TrialHead* trial = TrialLocked();
  return trial == nullptr ? INT64_MAX : trial->log->OldestGoneSince(received_time_us);
}

std::int64_t HeadFollower::OldestFrom(std::uint64_t index) const {
  absl::MutexLock lock(&heads_.mu_);
  const Heads::TrialHead* trial = TrialLocked();
  return trial == nullptr ? INT64_MAX : trial->log->OldestFrom(index);
}

}  // namespace stepwell
