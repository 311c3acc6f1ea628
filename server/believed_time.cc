#include "server/believed_time.h"

namespace stepwell {

absl::Time BelievedTime::At(absl::Time wall, absl::Duration monotonic) {
  const absl::Time expected = last_ ? *last_ + (monotonic - last_monotonic_) : wall;
  last_monotonic_ = monotonic;
  ahead_ = wall - expected;
  if (ahead_ <= kJumpMax) {
    doubted_since_.reset();
  } else {
    // Another jump on top of it has a day of its own to stand.
    if (!doubted_since_ || ahead_ > doubted_ahead_ + kJumpMax) {
      doubted_since_ = monotonic;
      doubted_ahead_ = ahead_;
    }
    if (monotonic - *doubted_since_ < kDoubtMax) {
      last_ = expected;
      return expected;
    }
    doubted_since_.reset();
  }
  ahead_ = absl::ZeroDuration();
  last_ = wall;
  return wall;
}

}  // namespace stepwell
