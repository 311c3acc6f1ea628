#include "storage/book_changes.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stepwell {

BookScope::BookScope(std::vector<TrialId> trials) {
  std::sort(trials.begin(), trials.end());
  trials.erase(std::unique(trials.begin(), trials.end()), trials.end());
  trials_ = std::move(trials);
}

std::optional<BookChanges::Moment> BookChanges::NowLocked(TrialId trial_id) const {
  if (all_.under_way_count > 0 || !doubt_end_.HasPassed(clock_)) return std::nullopt;
  const auto trial = trials_.find(trial_id);
  if (trial == trials_.end()) return Moment{all_.changed_no};
  if (trial->second.under_way_count > 0) return std::nullopt;
  return Moment{std::max(all_.changed_no, trial->second.changed_no)};
}

std::optional<BookChanges::Moment> BookChanges::Now(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  return NowLocked(trial_id);
}

bool BookChanges::NoneSince(TrialId trial_id, Moment moment) const {
  absl::MutexLock lock(&mu_);
  return NowLocked(trial_id) == moment;
}

void BookChanges::Begin(const BookScope& scope) {
  absl::MutexLock lock(&mu_);
  if (scope.is_all()) {
    ++all_.under_way_count;
    return;
  }
  for (const TrialId trial_id : scope.trials()) ++trials_[trial_id].under_way_count;
}

void BookChanges::End(const BookScope& begun, Outcome outcome, const BookScope& changed) {
  absl::MutexLock lock(&mu_);
  const auto end = [](Trial& trial) {
    STEPWELL_CHECK(trial.under_way_count > 0);
    --trial.under_way_count;
  };
  if (begun.is_all()) {
    end(all_);
  } else {
    for (const TrialId trial_id : begun.trials()) end(trials_[trial_id]);
  }
  if (outcome != Outcome::kNothing) NoteChangedLocked(changed);
  if (outcome == Outcome::kInDoubt) doubt_end_ = SteadyTime::Now(clock_) + kDoubtRest;
  if (trials_.size() > kTrialsMax) ForgetTrialsLocked();
}

void BookChanges::NoteChangedLocked(const BookScope& changed) {
  ++last_no_;
  if (changed.is_all()) {
    all_.changed_no = last_no_;
    return;
  }
  for (const TrialId trial_id : changed.trials()) trials_[trial_id].changed_no = last_no_;
}

void BookChanges::ForgetTrialsLocked() {
  all_.changed_no = ++last_no_;
  absl::erase_if(trials_, [](const auto& trial) { return trial.second.under_way_count == 0; });
}

}  // namespace stepwell
