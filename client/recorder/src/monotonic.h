// The recorder's clocks.
#pragma once

#include <time.h>

#include <cstdint>

namespace stepwell::recorder {

inline std::uint64_t ReadClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// What events carry. Served by the vDSO: no system call where the kernel's clock source is the TSC.
inline std::uint64_t MonotonicNs() { return ReadClockNs(CLOCK_MONOTONIC); }

}  // namespace stepwell::recorder
