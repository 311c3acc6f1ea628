#include "server/believed_time.h"

namespace stepwell {

absl::Time BelievedTime::At(absl::Time wall, absl::Duration monotonic) {
  const absl::Time expected = last_ ? *last_ + (monotonic - last_monotonic_) : wall;
  last_monotonic_ = monotonic;
  ahead_ = wall - expected;
  if (ahead_ <= kJumpMax) {
    doubted_since_.reset();
  } else {
    if (!doubted_since_) doubted_since_ = monotonic;
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
