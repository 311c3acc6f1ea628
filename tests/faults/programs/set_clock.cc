// A wall clock that a test sets: preloaded (LD_PRELOAD) into master, PostgreSQL, agent and trainers, which read
// the machine's clocks with what the file SET_CLOCK_FILE adds to them (SetOffsets). The kernel's own waits until
// a time of the wall clock are cut into short ones, so that they end by the clock that is read, as they do where
// the machine's is set. Waits by CLOCK_MONOTONIC and those of a length are the kernel's. What it does not reach:
// times that the kernel stamps itself (files), and futex(2) where a program calls it past the C library.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/faults/programs/clock_offsets.h"

namespace stepwell::faults {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kSliceNs = 20'000'000;

template <typename Function>
Function* Next(const char* name, const char* version = nullptr) {  // dlsym finds the oldest
  void* found = version == nullptr ? nullptr : dlvsym(RTLD_NEXT, name, version);
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  return reinterpret_cast<Function*>(found);
}

const ClockOffsets& Offsets() {
  static const ClockOffsets* const offsets = [] {
    static const ClockOffsets none;
    const char* const path = getenv("SET_CLOCK_FILE");
    const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return &none;
    void* const mapped = mmap(nullptr, sizeof(ClockOffsets), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return mapped == MAP_FAILED ? &none : static_cast<const ClockOffsets*>(mapped);
  }();
  return *offsets;
}

std::int64_t OffsetNs(clockid_t id) {
  switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return Offsets().wall_ns.load(std::memory_order_relaxed);
    case CLOCK_BOOTTIME:
      return Offsets().boot_ns.load(std::memory_order_relaxed);
    default:
      return 0;
  }
}

// The nearest that there is: some wait without an end.
std::int64_t NsOf(const timespec& time) {
  constexpr std::int64_t kSecondsMax = INT64_MAX / kSecondNs - 1;
  return std::clamp<std::int64_t>(time.tv_sec, -kSecondsMax, kSecondsMax) * kSecondNs +
         time.tv_nsec;
}

timespec TimeOf(std::int64_t ns) {
  const std::int64_t part = ((ns % kSecondNs) + kSecondNs) % kSecondNs;
  return {.tv_sec = (ns - part) / kSecondNs, .tv_nsec = part};
}

std::int64_t KernelNs(clockid_t id) {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  timespec now{};
  next(id, &now);
  return NsOf(now);
}

std::int64_t WallNs() { return KernelNs(CLOCK_REALTIME) + OffsetNs(CLOCK_REALTIME); }

// wait(until), by the kernel's wall clock, until it ends otherwise than by its time, or the time has come.
template <typename Wait>
int InSlices(const timespec& deadline, int timed_out, const Wait& wait) {
  while (true) {
    const std::int64_t left_ns = NsOf(deadline) - WallNs();
    const timespec until =
        TimeOf(KernelNs(CLOCK_REALTIME) + std::clamp<std::int64_t>(left_ns, 0, kSliceNs));
    const int rc = wait(until);
    if (rc != timed_out || NsOf(deadline) <= WallNs()) return rc;
  }
}

// Which clock a condition variable waits by is not told: the nearer one.
bool IsOfWallClock(const timespec& deadline) {
  const auto distance = [&](std::int64_t now_ns) { return std::llabs(NsOf(deadline) - now_ns); };
  return distance(WallNs()) < distance(KernelNs(CLOCK_MONOTONIC));
}

}  // namespace
}  // namespace stepwell::faults

using stepwell::faults::InSlices;
using stepwell::faults::IsOfWallClock;
using stepwell::faults::Next;
using stepwell::faults::NsOf;
using stepwell::faults::OffsetNs;
using stepwell::faults::TimeOf;
using stepwell::faults::WallNs;

extern "C" {

int clock_gettime(clockid_t id, timespec* now) noexcept {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int rc = next(id, now);
  const std::int64_t offset_ns = OffsetNs(id);
  if (rc == 0 && offset_ns != 0) *now = TimeOf(NsOf(*now) + offset_ns);
  return rc;
}

int gettimeofday(timeval* now, void*) noexcept {
  const timespec time = TimeOf(WallNs());
  *now = {.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* now) noexcept {
  const time_t seconds = TimeOf(WallNs()).tv_sec;
  if (now != nullptr) *now = seconds;
  return seconds;
}

int timespec_get(timespec* now, int base) noexcept {
  if (base != TIME_UTC) return 0;
  *now = TimeOf(WallNs());
  return base;
}

int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* deadline) {
  static auto* const next = Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>(
      "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!IsOfWallClock(*deadline)) return next(cond, mutex, deadline);
  return InSlices(*deadline, ETIMEDOUT,
                  [&](const timespec& until) { return next(cond, mutex, &until); });
}

int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t id,
                           const timespec* deadline) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>(
          "pthread_cond_clockwait");
  if (id != CLOCK_REALTIME) return next(cond, mutex, id, deadline);
  return InSlices(*deadline, ETIMEDOUT,
                  [&](const timespec& until) { return next(cond, mutex, id, &until); });
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept {
  static auto* const next = Next<int(pthread_mutex_t*, const timespec*)>("pthread_mutex_timedlock");
  return InSlices(*deadline, ETIMEDOUT, [&](const timespec& until) { return next(mutex, &until); });
}

int clock_nanosleep(clockid_t id, int flags, const timespec* time, timespec* left) {
  static auto* const next =
      Next<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
  if (id != CLOCK_REALTIME || (flags & TIMER_ABSTIME) == 0) return next(id, flags, time, left);
  return InSlices(*time, 0, [&](const timespec& until) { return next(id, flags, &until, left); });
}

}  // extern "C"
