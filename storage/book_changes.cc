#include "storage/book_changes.h"

#include "base/check.h"

namespace stepwell {

bool BookChanges::AtRestLocked() const {
  return under_way_count_ == 0 && doubt_end_.HasPassed(clock_);
}

std::optional<BookChanges::Moment> BookChanges::Now() const {
  absl::MutexLock lock(&mu_);
  if (!AtRestLocked()) return std::nullopt;
  return Moment{changed_count_};
}

bool BookChanges::NoneSince(Moment moment) const {
  absl::MutexLock lock(&mu_);
  return AtRestLocked() && changed_count_ == static_cast<std::int64_t>(moment);
}

void BookChanges::Begin() {
  absl::MutexLock lock(&mu_);
  ++under_way_count_;
}

void BookChanges::End(Outcome outcome) {
  absl::MutexLock lock(&mu_);
  STEPWELL_CHECK(under_way_count_ > 0);
  --under_way_count_;
  if (outcome == Outcome::kNothing) return;
  ++changed_count_;
  if (outcome == Outcome::kInDoubt) doubt_end_ = SteadyTime::Now(clock_) + kDoubtRest;
}

}  // namespace stepwell
