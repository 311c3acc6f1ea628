// The processors of a bench that must not be disturbed by what it started itself.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace stepwell::bench {

inline std::uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The processor's own counter, for what ClockNs must not be asked: its code and data lie on pages of their own,
// so that a read of it is dear for whoever has not just done another. What came before is over when it is read,
// and nothing of what comes has begun.
inline std::uint64_t ReadCounter() {
#if defined(__x86_64__)
  asm volatile("lfence" : : : "memory");
  const std::uint64_t counter = __builtin_ia32_rdtsc();
  asm volatile("lfence" : : : "memory");
  return counter;
#else
  return ClockNs(CLOCK_MONOTONIC);
#endif
}

inline double NsPerCount() {
  const std::uint64_t begin_ns = ClockNs(CLOCK_MONOTONIC);
  const std::uint64_t begin = ReadCounter();
  while (ClockNs(CLOCK_MONOTONIC) - begin_ns < 100'000'000) {
  }
  const std::uint64_t end = ReadCounter();
  return static_cast<double>(ClockNs(CLOCK_MONOTONIC) - begin_ns) /
         static_cast<double>(end - begin);
}

// The calling thread's processor time, asked of the kernel without a way through libc or the vDSO.
inline std::uint64_t ThreadCpuNs() {
  timespec now;
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
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
