// ClockAnchor: one moment on the wall clock and on the monotonic clock; event times are converted
// through it. Taken anew each 10 s, because the wall clock is steered. A value.
//
//   const std::int64_t time_us = ClockAnchor::Take().ToUnixUs(event.time);
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/bounded_math.h"

namespace stepwell::agent {

struct ClockAnchor {
  std::int64_t realtime_us = 0;
  std::uint64_t monotonic_ns = 0;

  // The closest pair of a few tries, so that a preemption between two clock reads does no harm.
  static ClockAnchor Take();
  // Times that int64 does not hold become the nearest that it does.
  std::int64_t ToUnixUs(std::uint64_t event_ns) const {
    const auto elapsed_ns = static_cast<std::int64_t>(event_ns - monotonic_ns);
    return BoundedSum(realtime_us, elapsed_ns / 1000);
  }
  std::int64_t ToUnixNs(std::uint64_t event_ns) const {
    std::int64_t realtime_ns = 0;
    if (__builtin_mul_overflow(realtime_us, std::int64_t{1000}, &realtime_ns)) {
      return realtime_us < 0 ? std::numeric_limits<std::int64_t>::min()
                             : std::numeric_limits<std::int64_t>::max();
    }
    return BoundedSum(realtime_ns, static_cast<std::int64_t>(event_ns - monotonic_ns));
  }
};

// CLOCK_MONOTONIC, as recorders stamp their events.
std::uint64_t MonotonicNs();
// The kernel's boot id: which machine, and which monotonic clock. Empty where it is hidden.
std::string BootId();

}  // namespace stepwell::agent
