#include "client/agent/sensors/boot_clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace stepwell::agent {

BootClock& BootClock::Get() {
  // Never destroyed: threads that outlive main() ask it until the process is gone.
  static BootClock* const clock = new BootClock();
  return *clock;
}

absl::Time BootClock::Now() const { return absl::Now(); }

absl::Duration BootClock::Monotonic() const {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace stepwell::agent
