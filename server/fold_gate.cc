#include "server/fold_gate.h"

#include "base/check.h"

namespace stepwell {

FoldGate::Reader FoldGate::EnterFor(std::optional<TrialId> trial_id) {
  absl::MutexLock lock(&mu_);
  // Counted before it waits: a fold that follows on a fold leaves it its turn.
  if (!trial_id) {
    ++all_reader_count_;
    const auto none_is_folded = [this]()
                                    ABSL_SHARED_LOCKS_REQUIRED(mu_) { return fold_count_ == 0; };
    if (fold_count_ > 0) mu_.Await(absl::Condition(&none_is_folded));
    return Reader(this, trial_id);
  }
  Trial& trial = trials_[*trial_id];
  ++trial.reader_count;
  if (trial.is_folded) {
    const auto is_over = [this, id = *trial_id]()
                             ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !trials_.at(id).is_folded; };
    mu_.Await(absl::Condition(&is_over));
  }
  return Reader(this, trial_id);
}

void FoldGate::Leave(std::optional<TrialId> trial_id) {
  absl::MutexLock lock(&mu_);
  if (!trial_id) {
    STEPWELL_CHECK(--all_reader_count_ >= 0);
    return;
  }
  const auto trial = trials_.find(*trial_id);
  STEPWELL_CHECK(trial != trials_.end() && trial->second.reader_count > 0);
  if (--trial->second.reader_count == 0 && !trial->second.is_folded) trials_.erase(trial);
}

bool FoldGate::Begin(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  if (all_reader_count_ > 0) return false;
  const auto [trial, is_new] = trials_.try_emplace(trial_id);
  if (!is_new) return false;
  trial->second.is_folded = true;
  ++fold_count_;
  return true;
}

void FoldGate::End(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end() || !trial->second.is_folded) return;
  trial->second.is_folded = false;
  --fold_count_;
  if (trial->second.reader_count == 0) trials_.erase(trial);
}

void FoldGate::Open() {
  absl::MutexLock lock(&mu_);
  fold_count_ = 0;
  for (auto trial = trials_.begin(); trial != trials_.end();) {
    trial->second.is_folded = false;
    const auto here = trial++;
    if (here->second.reader_count == 0) trials_.erase(here);
  }
}

}  // namespace stepwell
