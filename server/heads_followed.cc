// What heads keep for followers, and for how long.
#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "server/heads.h"

namespace stepwell {

FollowLog& Heads::LogOfLocked(TrialHead& trial) {
  if (trial.log == nullptr) {
    trial.log = std::make_unique<FollowLog>(next_log_id_++);
    kept_bytes_ += kFollowLogBytes;
  }
  return *trial.log;
}

void Heads::PopFollowedLocked(TrialHead& trial, std::vector<HeadChunkPtr>& dropped) {
  HeadChunkPtr chunk = trial.log->PopFront();
  WriterHead& writer = trial.writers.at(chunk->writer_no);
  writer.gone_sequence = std::max(writer.gone_sequence, chunk->sequence);
  if (chunk->sequence <= writer.folded_sequence) {
    followed_bytes_ -= chunk->bytes + kFollowEntryBytes;
  }
  if (trial.log->empty()) logged_.erase(chunk->trial_id);
  dropped.push_back(std::move(chunk));
}

bool Heads::FrontFoldedLocked(const TrialHead& trial) const {
  const HeadChunkPtr& front = trial.log->At(trial.log->begin_index());
  return front->sequence <= trial.writers.at(front->writer_no).folded_sequence;
}

void Heads::DropFollowedLocked(std::int64_t now_us, std::vector<HeadChunkPtr>& dropped) {
  const std::int64_t first_kept_us = now_us - absl::ToInt64Microseconds(options_.followed_age_max);
  const std::vector<TrialId> logged(logged_.begin(), logged_.end());
  for (const TrialId trial_id : logged) {
    TrialHead& trial = trials_.at(trial_id);
    while (!trial.log->empty() && FrontFoldedLocked(trial) &&
           trial.log->At(trial.log->begin_index())->received_time_us < first_kept_us) {
      PopFollowedLocked(trial, dropped);
    }
  }
  if (followed_bytes_ > options_.followed_bytes_max) DropFollowedOverLocked(dropped);
}

// The oldest first over all trials. One that is not folded frees nothing by itself, but may stand before
// others that are: it goes when nothing else is left.
void Heads::DropFollowedOverLocked(std::vector<HeadChunkPtr>& dropped) {
  using Front = std::tuple<bool, std::int64_t, TrialId>;
  std::priority_queue<Front, std::vector<Front>, std::greater<>> fronts;
  const auto queue = [&](TrialId trial_id) ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    const TrialHead& trial = trials_.at(trial_id);
    if (trial.recovering || trial.log->empty()) return;
    fronts.emplace(!FrontFoldedLocked(trial),
                   trial.log->At(trial.log->begin_index())->received_time_us, trial_id);
  };
  for (const TrialId trial_id : logged_) queue(trial_id);
  while (followed_bytes_ > options_.followed_bytes_max && !fronts.empty()) {
    const TrialId trial_id = std::get<TrialId>(fronts.top());
    fronts.pop();
    PopFollowedLocked(trials_.at(trial_id), dropped);
    queue(trial_id);
  }
}

// The trial leaves heads, and what it was followed by with it.
void Heads::LeaveLogLocked(TrialId trial_id, const TrialHead& trial) {
  if (trial.log == nullptr) return;
  for (std::uint64_t i = trial.log->begin_index(); i < trial.log->end_index(); ++i) {
    followed_bytes_ -= trial.log->At(i)->bytes + kFollowEntryBytes;
  }
  logged_.erase(trial_id);
  whole_since_us_ = absl::ToUnixMicros(options_.clock->Now());
}

void Heads::DropOldFollowed() {
  std::vector<HeadChunkPtr> dropped;  // freed outside of the lock
  const absl::Time now = options_.clock->Now();
  absl::MutexLock lock(&mu_);
  DropFollowedLocked(absl::ToUnixMicros(now), dropped);
}

std::int64_t Heads::followed_bytes() const {
  absl::MutexLock lock(&mu_);
  return followed_bytes_;
}

Heads::Signals Heads::SignalsLocked() const {
  Signals signals;
  for (const auto& [trial_id, trial] : trials_) {
    if (trial.signal != nullptr) signals.push_back(trial.signal);
  }
  return signals;
}

void Heads::EndFollows() {
  Signals signals;
  {
    absl::MutexLock lock(&mu_);
    follows_ending_ = true;
    signals = SignalsLocked();
  }
  for (const auto& signal : signals) signal->Notify();
}

}  // namespace stepwell
