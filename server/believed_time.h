// BelievedTime: the wall clock for what is removed for its age. A clock that somebody sets forward by a year would
// take, within a minute and for good, all that has an age cap; set right again it brings nothing back. So a jump
// ahead is believed once it has stood for a day of the monotonic clock; until then time goes on as it did.
// A clock that is behind removes too little, which the next sweep mends: it is believed at once. What the clock
// was before the first look is not known. A core; pure. Confined to its thread, or under its owner's lock.
//
//   const absl::Time now = believed_.At(clock.Now(), clock.Monotonic());
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace stepwell {

class BelievedTime {
 public:
  // More than NTP steps, less than an age that somebody would set.
  static constexpr absl::Duration kJumpMax = absl::Hours(1);
  // A suspended machine is ahead, too, rightly: its caps are late by this at most.
  static constexpr absl::Duration kDoubtMax = absl::Hours(24);

  // `monotonic` never falls from call to call.
  absl::Time At(absl::Time wall, absl::Duration monotonic);
  // How far ahead the wall clock was at the last call, while it is not believed; 0 = it is.
  absl::Duration ahead() const { return ahead_; }

 private:
  std::optional<absl::Time> last_;
  absl::Duration last_monotonic_ = absl::ZeroDuration();
  std::optional<absl::Duration> doubted_since_;
  absl::Duration doubted_ahead_ = absl::ZeroDuration();  // as it was then
  absl::Duration ahead_ = absl::ZeroDuration();
};

}  // namespace stepwell
