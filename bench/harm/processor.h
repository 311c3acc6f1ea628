// The processors of a bench that must not be disturbed by what it started itself.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace stepwell::bench {

inline std::uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The calling thread, and what it starts from now on, on the processor `index` (0, 1, ...) of those that
// this process might use when it began; where there are fewer, on the last of them.
inline void StayOn(int index) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return set;
  }();
  cpu_set_t one;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (index-- == 0) break;
  }
  sched_setaffinity(0, sizeof(one), &one);
}

}  // namespace stepwell::bench
