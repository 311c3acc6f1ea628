#include "server/fold_gate.h"

#include "base/check.h"

namespace stepwell {

bool FoldGate::IsFoldedLocked(TrialId trial_id) const {
  const auto trial = trials_.find(trial_id);
  return trial != trials_.end() && trial->second.is_folded;
}

FoldGate::Reader FoldGate::Enter(TrialId trial_id) {
  const auto is_over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !IsFoldedLocked(trial_id); };
  absl::MutexLock lock(&mu_);
  // Counted before it waits: a fold that follows on a fold leaves it its turn.
  ++trials_[trial_id].reader_count;
  if (!is_over()) mu_.Await(absl::Condition(&is_over));
  return Reader(this, trial_id);
}

bool FoldGate::AwaitEnd(TrialId trial_id, absl::Duration most) {
  const auto is_over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !IsFoldedLocked(trial_id); };
  absl::MutexLock lock(&mu_);
  return is_over() || mu_.AwaitWithTimeout(absl::Condition(&is_over), most);
}

void FoldGate::Leave(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  STEPWELL_CHECK(trial != trials_.end() && trial->second.reader_count > 0);
  if (--trial->second.reader_count == 0 && !trial->second.is_folded) trials_.erase(trial);
}

bool FoldGate::Begin(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  const auto [trial, is_new] = trials_.try_emplace(trial_id);
  if (!is_new) return false;
  trial->second.is_folded = true;
  return true;
}

void FoldGate::End(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end() || !trial->second.is_folded) return;
  trial->second.is_folded = false;
  if (trial->second.reader_count == 0) trials_.erase(trial);
}

void FoldGate::Open() {
  absl::MutexLock lock(&mu_);
  for (auto trial = trials_.begin(); trial != trials_.end();) {
    trial->second.is_folded = false;
    const auto here = trial++;
    if (here->second.reader_count == 0) trials_.erase(here);
  }
}

}  // namespace stepwell
