#include "storage/pg_read_memory.h"

#include <algorithm>

namespace stepwell {
namespace {

// Much longer than a merge takes to come.
constexpr absl::Duration kLeafGoneRest = absl::Minutes(10);

}  // namespace

std::optional<TrialId> PgReadMemory::TrialOf(const TrialSelector& selector) const {
  absl::MutexLock lock(&mu_);
  const auto known = names_.find({selector.project, selector.external_id});
  if (known == names_.end()) return std::nullopt;
  return known->second;
}

PgReadMemory::AllSeries PgReadMemory::SeriesOf(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  const auto known = std::find_if(series_.begin(), series_.end(), [&](const Remembered& each) {
    return each.trial_id == trial_id;
  });
  if (known == series_.end()) return nullptr;
  series_.splice(series_.begin(), series_, known);
  return series_.front().series;
}

std::int64_t PgReadMemory::age() const {
  absl::MutexLock lock(&mu_);
  return age_;
}

void PgReadMemory::NoteTrial(const TrialSelector& selector, TrialId trial_id, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age != age_ || selector.trial_id != 0) return;
  if (names_.size() >= kNamesMax) names_.clear();
  names_[{selector.project, selector.external_id}] = trial_id;
}

void PgReadMemory::NoteSeries(TrialId trial_id, AllSeries series, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age != age_ || series->size() > kSeriesMax) return;
  ForgetLocked(trial_id);
  series_count_ += series->size();
  series_.push_front({trial_id, std::move(series)});
  while (series_count_ > kSeriesMax) ForgetLocked(series_.back().trial_id);
}

void PgReadMemory::Clear() {
  absl::MutexLock lock(&mu_);
  ++age_;
  names_.clear();
  series_.clear();
  series_count_ = 0;
}

bool PgReadMemory::may_name_leaves() const {
  absl::MutexLock lock(&mu_);
  return name_leaves_from_.HasPassed();
}

void PgReadMemory::NoteLeafGone() {
  absl::MutexLock lock(&mu_);
  name_leaves_from_ = SteadyTime::Now() + kLeafGoneRest;
}

void PgReadMemory::ForgetLocked(TrialId trial_id) {
  const auto known = std::find_if(series_.begin(), series_.end(), [&](const Remembered& each) {
    return each.trial_id == trial_id;
  });
  if (known == series_.end()) return;
  series_count_ -= known->series->size();
  series_.erase(known);
}

}  // namespace stepwell
