// LookHurry: when a root is looked through between visits because something new lies there. A writer's
// directory comes first, its writer.json some milliseconds later: it is looked for often meanwhile. Who
// makes names that become no writers has a pause after each such time, twice as long as the last, in
// which visits alone find what is new. Pure: the clock is the caller's. Thread-compatible.
//
//   hurry.OnArrival(now);
//   if (hurry.IsDue(now)) hurry.Looked(Look(), now);
//   Wait(hurry.NextLook(now));
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace stepwell::agent {

class LookHurry {
 public:
  static constexpr absl::Duration kLength = absl::Milliseconds(100);
  static constexpr absl::Duration kStep = absl::Milliseconds(5);
  static constexpr absl::Duration kPauseMin = absl::Milliseconds(10);
  static constexpr absl::Duration kPauseMax = absl::Seconds(1);
  // What was in vain so long ago says nothing any more.
  static constexpr absl::Duration kCalm = absl::Seconds(10);

  void OnArrival(absl::Duration now) {
    if (IsListening(now)) {
      Begin(now);
    } else {
      came_again_ = true;
    }
  }
  // An arrival now would be looked at now: others are known of, or wait for the end of the pause.
  bool IsListening(absl::Duration now) const { return now >= rest_until_; }

  // From then on.
  absl::Duration listens_from() const { return rest_until_; }

  bool IsDue(absl::Duration now) {
    if (came_again_ && IsListening(now)) Begin(now);
    return now < until_ && now >= next_;
  }
  enum class Seen {
    kWriters,
    kNothing,
    // It is not this root where something came.
    kNoChange,
  };
  void Looked(Seen seen, absl::Duration now) {
    next_ = now + kStep;
    switch (seen) {
      case Seen::kWriters:
        pause_ = kPauseMin;
        rest_until_ = until_ = now + kLength;
        came_again_ = false;
        return;
      case Seen::kNothing:
        return;
      case Seen::kNoChange:
        pause_ = pause_before_;
        rest_until_ = until_ = now;
        return;
    }
  }
  // Infinite where nothing is looked for.
  absl::Duration NextLook(absl::Duration now) const {
    if (now < until_) return next_;
    return came_again_ ? rest_until_ : absl::InfiniteDuration();
  }

 private:
  void Begin(absl::Duration now) {
    came_again_ = false;
    if (now - until_ >= kCalm) pause_ = kPauseMin;
    next_ = now;
    until_ = now + kLength;
    rest_until_ = until_ + pause_;
    pause_before_ = pause_;
    pause_ = std::min(2 * pause_, kPauseMax);
  }

  // Looks go on until then, and none begins before the other.
  absl::Duration until_ = -absl::InfiniteDuration();
  absl::Duration rest_until_ = -absl::InfiniteDuration();
  absl::Duration next_ = -absl::InfiniteDuration();
  // After the next time that is in vain, and after this one.
  absl::Duration pause_ = kPauseMin;
  absl::Duration pause_before_ = kPauseMin;
  bool came_again_ = false;
};

}  // namespace stepwell::agent
