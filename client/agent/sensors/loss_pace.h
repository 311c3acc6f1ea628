// LossPace: when a library may be begun anew for a device that is lost, though those that are well
// have no samples meanwhile: at once, then 20 s after that, 40 s, and so on up to 10 minutes; and
// not before 20 times as long as the last time took. Pure.
//
//   if (pace.IsDue(clock.Monotonic())) { ...; pace.Began(began_at, clock.Monotonic()); }
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace stepwell::agent {

class LossPace {
 public:
  static constexpr absl::Duration kWaitMin = absl::Seconds(20);
  static constexpr absl::Duration kWaitMax = absl::Minutes(10);
  // So that those that are well lack a twentieth of their samples at most.
  static constexpr int kShare = 20;

  bool IsDue(absl::Duration now) const { return now >= due_at_; }
  void Began(absl::Duration began_at, absl::Duration ended_at) {
    due_at_ = std::max(began_at + wait_, ended_at + kShare * (ended_at - began_at));
    wait_ = std::min(2 * wait_, kWaitMax);
  }
  // Nothing is lost.
  void Reset() { *this = LossPace(); }

 private:
  absl::Duration wait_ = kWaitMin;
  absl::Duration due_at_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
