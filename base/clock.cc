#include "base/clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace stepwell {

RealClock& RealClock::Get() {
  static RealClock clock;
  return clock;
}

absl::Time RealClock::Now() const { return absl::Now(); }

absl::Duration RealClock::Monotonic() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

absl::Time FakeClock::Now() const {
  absl::MutexLock lock(&mu_);
  return now_;
}

absl::Duration FakeClock::Monotonic() const {
  absl::MutexLock lock(&mu_);
  return monotonic_;
}

void FakeClock::Advance(absl::Duration by) {
  absl::MutexLock lock(&mu_);
  now_ += by;
  monotonic_ += by;
}

}  // namespace stepwell
