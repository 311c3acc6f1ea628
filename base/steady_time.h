// SteadyTime: a moment on the clock that nobody sets (CLOCK_MONOTONIC). For deadlines, for when something
// is due, and for how long it took: a wall clock that is set moves none of them. A value; it means nothing
// to another machine, or after a boot. absl::Time stays what is stored and shown.
//
//   const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(5);
//   if (!mu_.AwaitWithTimeout(absl::Condition(&done), deadline.Left())) return TooLate();
#pragma once

#include <algorithm>
#include <compare>

#include "absl/time/time.h"
#include "base/clock.h"

namespace stepwell {

class SteadyTime {
 public:
  // Long past.
  constexpr SteadyTime() = default;
  static SteadyTime Now(const Clock& clock = RealClock::Get()) {
    return SteadyTime(clock.Monotonic());
  }
  // Before and after all that Now tells.
  static constexpr SteadyTime InfinitePast() { return SteadyTime(-absl::InfiniteDuration()); }
  static constexpr SteadyTime InfiniteFuture() { return SteadyTime(absl::InfiniteDuration()); }

  // How long until then; zero once it has come. Infinite for InfiniteFuture, which waits take as no limit.
  absl::Duration Left(const Clock& clock = RealClock::Get()) const {
    return std::max(*this - Now(clock), absl::ZeroDuration());
  }
  bool HasPassed(const Clock& clock = RealClock::Get()) const { return Now(clock) >= *this; }

  friend SteadyTime operator+(SteadyTime time, absl::Duration by) {
    return SteadyTime(time.at_ + by);
  }
  friend SteadyTime operator-(SteadyTime time, absl::Duration by) {
    return SteadyTime(time.at_ - by);
  }
  friend absl::Duration operator-(SteadyTime later, SteadyTime earlier) {
    return later.at_ - earlier.at_;
  }
  SteadyTime& operator+=(absl::Duration by) { return *this = *this + by; }
  friend bool operator==(SteadyTime a, SteadyTime b) { return a.at_ == b.at_; }
  friend std::strong_ordering operator<=>(SteadyTime a, SteadyTime b) {
    if (a.at_ == b.at_) return std::strong_ordering::equal;
    return a.at_ < b.at_ ? std::strong_ordering::less : std::strong_ordering::greater;
  }

 private:
  explicit constexpr SteadyTime(absl::Duration at) : at_(at) {}
  // Since the clock's start.
  absl::Duration at_ = -absl::InfiniteDuration();
};

}  // namespace stepwell
