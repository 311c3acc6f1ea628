// The failure that this survives: the wall clock is set between the begin of a wait and its end, by any
// amount, either way. The invariant: a wait ends when it is posted to, or when its time has passed on
// CLOCK_MONOTONIC, whichever is first; nothing else ends it as timed out.
#include "base/monotonic_waits.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "absl/base/internal/thread_identity.h"
#include "absl/synchronization/internal/create_thread_identity.h"
#include "absl/synchronization/internal/kernel_timeout.h"
#include "absl/synchronization/internal/per_thread_sem.h"
#include "absl/synchronization/internal/waiter.h"
#include "absl/time/clock.h"

namespace stepwell {
namespace {

using absl::base_internal::ThreadIdentity;
using absl::synchronization_internal::KernelTimeout;

constexpr std::int64_t kSecondNs = 1'000'000'000;

// The thread's count of posts, which abseil's own Post raises: it wakes who waits for it to leave 0.
static_assert(ABSL_WAITER_MODE == ABSL_WAITER_MODE_FUTEX);
static_assert(sizeof(absl::synchronization_internal::Waiter) == sizeof(std::atomic<std::int32_t>));
std::atomic<std::int32_t>& PostsOf(ThreadIdentity& identity) {
  return *reinterpret_cast<std::atomic<std::int32_t>*>(identity.waiter_state.data);
}

std::int64_t NsOf(const timespec& time) { return time.tv_sec * kSecondNs + time.tv_nsec; }

std::int64_t MonotonicNowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return NsOf(now);
}

// How long that is from now. Timeouts are made of the kernel's wall clock a moment ago, and what has passed by it has passed:
// absl::Now learns of a clock that was set up to two seconds later, and would make hours of it. It counts where it says less:
// a clock that was set back since the timeout was made.
std::int64_t LeftNs(std::int64_t wall_ns) {
  timeval now{};
  gettimeofday(&now, nullptr);
  const std::int64_t by_kernel = wall_ns - (now.tv_sec * kSecondNs + now.tv_usec * 1000);
  if (by_kernel <= 0) return 0;
  const std::int64_t by_abseil = wall_ns - absl::GetCurrentTimeNanos();
  return by_abseil > 0 ? std::min(by_kernel, by_abseil) : by_kernel;
}

// Abseil may wait more than once for one timeout: its monotonic time is that of the first.
std::int64_t MonotonicDeadlineNs(KernelTimeout timeout) {
  thread_local std::int64_t last_wall_ns = 0;
  thread_local std::int64_t last_deadline_ns = 0;
  const std::int64_t wall_ns = NsOf(timeout.MakeAbsTimespec());
  if (wall_ns != last_wall_ns) {
    last_wall_ns = wall_ns;
    last_deadline_ns = MonotonicNowNs() + LeftNs(wall_ns);
  }
  return last_deadline_ns;
}

bool TakePost(std::atomic<std::int32_t>& posts) {
  std::int32_t count = posts.load(std::memory_order_relaxed);
  while (count > 0) {
    if (posts.compare_exchange_weak(count, count - 1, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool Wait(std::atomic<std::int32_t>& posts, KernelTimeout timeout) {
  timespec until{};
  const timespec* deadline = nullptr;
  if (timeout.has_timeout()) {
    const std::int64_t deadline_ns = MonotonicDeadlineNs(timeout);
    until = {deadline_ns / kSecondNs, deadline_ns % kSecondNs};
    deadline = &until;
  }
  while (!TakePost(posts)) {
    const long rc = syscall(SYS_futex, reinterpret_cast<std::int32_t*>(&posts),
                            FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, deadline, nullptr,
                            FUTEX_BITSET_MATCH_ANY);
    if (rc != 0 && errno == ETIMEDOUT) return TakePost(posts);
  }
  return true;
}

bool WaitHere(KernelTimeout timeout) {
  ThreadIdentity& identity = *absl::synchronization_internal::GetOrCreateCurrentThreadIdentity();
  std::atomic<int>* const blocked_count = identity.blocked_count_ptr;
  if (blocked_count != nullptr) blocked_count->fetch_add(1, std::memory_order_relaxed);
  const bool posted = Wait(PostsOf(identity), timeout);
  if (blocked_count != nullptr) blocked_count->fetch_sub(1, std::memory_order_relaxed);
  return posted;
}

}  // namespace

void UseMonotonicWaits() {}

}  // namespace stepwell

// Of abseil's two hooks the one that waits; a strong symbol of the program takes the place of the weak
// one in abseil's library.
extern "C" bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(
    absl::synchronization_internal::KernelTimeout timeout) {
  return stepwell::WaitHere(timeout);
}
