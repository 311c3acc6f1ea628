// VisitPace: when the agent looks at what records, and when a look is not enough. Looks are a frame
// interval apart, at multiples of it a little after the ticks, so that what was read then goes with
// them; a visit is never skipped where the next look would come later than 500 ms after the last one.
// Pure: the clock is the caller's. Confined to the agent's loop.
//
//   VisitPace pace(absl::Milliseconds(100));
//   if (!pace.MaySkip(now) || AnyNews()) Visit(), pace.OnVisited(now);
//   Wait(pace.NextLook(now));
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace stepwell::agent {

class VisitPace {
 public:
  // A directive waits so long at most, as do deaths of workers and whatever says nothing of itself.
  static constexpr absl::Duration kVisitMax = absl::Milliseconds(500);
  // Reading a machine takes so long, as a rule.
  static constexpr absl::Duration kAfterTicks = absl::Milliseconds(20);

  // REQUIRES: frame_interval > 0. Times are monotonic, of the clock that ticks are on.
  explicit VisitPace(absl::Duration frame_interval)
      : interval_(frame_interval), after_ticks_(std::min(kAfterTicks, frame_interval / 4)) {}

  // On the grid, an interval after `now` or sooner; but an eighth of one lies between at least, so that
  // a late visit is not followed by a frame of almost nothing.
  absl::Duration NextLook(absl::Duration now) const {
    const absl::Duration soonest = now + interval_ / 8 - after_ticks_;
    return absl::Floor(soonest, interval_) + interval_ + after_ticks_;
  }
  // Where nothing is news.
  bool MaySkip(absl::Duration now) const { return NextLook(now) - visited_at_ <= kVisitMax; }
  void OnVisited(absl::Duration now) { visited_at_ = now; }

 private:
  absl::Duration interval_;
  absl::Duration after_ticks_;
  absl::Duration visited_at_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
