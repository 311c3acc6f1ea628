// HotClock tells CLOCK_MONOTONIC from the processor's own counter, where the kernel's clock does so, too.
// A read by the kernel's vDSO runs through four pages that no training uses (libc's text, what it knows of
// the vDSO, that one's text and its data): after some megabytes of a training's own work that is most of
// what a recording call costs. This one lies in the line of the gate, which each call has read already.
//
// The maintenance thread tells it again and again what time it is (ClockKeeper); what it was told holds for
// about a second. Later, before, in a forked child, and on other processors, the kernel is asked.
//
// Thread-safe: one thread sets it, all read it.
#pragma once

#include <atomic>
#include <cstdint>

#include "client/recorder/src/monotonic.h"

namespace stepwell::recorder {

class HotClock {
 public:
  // A count of the processor's counter, and when it was that.
  struct Reading {
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
  };

  // Waits for what came before it in the program, as the kernel's own read does: else the end of a scope
  // would be taken while its last loads were on their way. 0 = this processor has none.
  static std::uint64_t ReadCounter() {
#if defined(__x86_64__)
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    asm volatile("rdtscp" : "=a"(low), "=d"(high) : : "rcx", "memory");
    return std::uint64_t{high} << 32 | low;
#else
    return 0;
#endif
  }

  // May be less than what was told before by what a setting corrects: see ThreadClock.
  std::uint64_t NowNs() const {
    std::uint64_t now_ns = 0;
    return TryNow(now_ns) ? now_ns : AskKernel();
  }

  // From now on: `ns_per_count` in units of 2^-32, 0 = ask the kernel.
  void Set(const Reading& at, std::uint32_t ns_per_count) {
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
    turn_.store(turn + 1, std::memory_order_relaxed);
    ns_per_count_.store(ns_per_count, std::memory_order_release);
    count_.store(at.count, std::memory_order_release);
    ns_.store(at.ns, std::memory_order_release);
    turn_.store(turn + 2, std::memory_order_release);
  }
  bool is_set() const { return ns_per_count_.load(std::memory_order_relaxed) != 0; }

 private:
  // Out of the way of the lines that calls run through.
  [[gnu::cold, gnu::noinline]] static std::uint64_t AskKernel() { return MonotonicNs(); }

  bool TryNow(std::uint64_t& now_ns) const {
    const std::uint32_t turn = turn_.load(std::memory_order_acquire);
    const std::uint64_t ns_per_count = ns_per_count_.load(std::memory_order_acquire);
    const std::uint64_t count = count_.load(std::memory_order_acquire);
    const std::uint64_t ns = ns_.load(std::memory_order_acquire);
    // Each load above that sees something of a new setting makes its odd turn seen here.
    if (ns_per_count == 0 || (turn & 1) != 0 || turn_.load(std::memory_order_relaxed) != turn)
        [[unlikely]] {
      return false;
    }
    const std::uint64_t counts = ReadCounter() - count;
    // Told too long ago (1.4 s at 3 GHz), or of a moment after this one.
    if (counts >> 32 != 0) [[unlikely]] {
      return false;
    }
    now_ns = ns + (counts * ns_per_count >> 32);
    return true;
  }

  // Wiped to zero in a forked child, as the gate is: nothing is known there.
  std::atomic<std::uint32_t> turn_{0};  // odd while it is set
  std::atomic<std::uint32_t> ns_per_count_{0};
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> ns_{0};
};

// A thread's view of it, which never goes back but where it was far ahead: what begins after a step's begin
// must lie in the step. Confined to the thread.
class ThreadClock {
 public:
  std::uint64_t NowNs(const HotClock& clock) {
    const std::uint64_t now_ns = clock.NowNs();
    // Past it where now is later.
    last_ns_ = last_ns_ - now_ns < kAheadMaxNs ? last_ns_ : now_ns;
    return last_ns_;
  }

 private:
  // A machine that was suspended, a clock that was turned by the 500 ppm that the kernel allows: standing
  // still for as long would be worse than going back.
  static constexpr std::uint64_t kAheadMaxNs = 1'000'000;

  std::uint64_t last_ns_ = 0;
};

}  // namespace stepwell::recorder
