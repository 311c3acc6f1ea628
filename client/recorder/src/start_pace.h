// StartPace decides when an agent is started: at once where there is none, at once again where one
// died, and ever more rarely, 1 ... 60 s, where none ever came of it. Times are CLOCK_MONOTONIC ns.
// Pure. Thread-compatible.
//
//   if (pace.IsDue(is_served, now)) Launch() ? pace.Launched(now) : pace.Failed(now);
//   ...
//   pace.Ended(now);  // the process that we launched: the agent itself goes on behind it
#pragma once

#include <algorithm>
#include <cstdint>

namespace stepwell::recorder {

class StartPace {
 public:
  static constexpr std::uint64_t kSecondNs = 1'000'000'000;
  // Between two starts, however often agents die: a dead one is replaced within 2 s.
  static constexpr std::uint64_t kStartIntervalNs = 1 * kSecondNs;
  static constexpr std::uint64_t kDelayMaxNs = 60 * kSecondNs;
  // From the end of the launched process until another is launched: an agent may come late, on a
  // machine under load, or may have died before it was seen. Whoever comes second ends.
  static constexpr std::uint64_t kAppearNs = 3 * kSecondNs / 2;
  // From the first launch until it is a failure that none was seen.
  static constexpr std::uint64_t kAppearMaxNs = 5 * kSecondNs;

  // Whether to launch one now, given whether somebody serves the root.
  bool IsDue(bool is_served, std::uint64_t now_ns) {
    if (is_served) {
      phase_ = Phase::kServed;
      failure_count_ = 0;
      first_launch_ns_ = 0;
      return false;
    }
    if (phase_ == Phase::kServed) {
      phase_ = Phase::kWaiting;
      next_ns_ = launched_ns_ == 0 ? now_ns : std::max(now_ns, launched_ns_ + kStartIntervalNs);
    }
    if (phase_ == Phase::kAppearing && now_ns - ended_ns_ >= kAppearNs) GiveUp(now_ns);
    return phase_ == Phase::kWaiting && now_ns >= next_ns_;
  }
  void Launched(std::uint64_t now_ns) {
    phase_ = Phase::kLaunching;
    launched_ns_ = now_ns;
    if (first_launch_ns_ == 0) first_launch_ns_ = now_ns;
  }
  // As it should. REQUIRES: Launched came before.
  void Ended(std::uint64_t now_ns) {
    phase_ = Phase::kAppearing;
    ended_ns_ = now_ns;
  }
  void Failed(std::uint64_t now_ns) {
    phase_ = Phase::kWaiting;
    if (failure_count_ == 0) failed_ns_ = now_ns;
    const std::uint64_t delay_ns = kSecondNs << std::min(failure_count_, 6u);
    next_ns_ = now_ns + std::min(delay_ns, kDelayMaxNs);
    first_launch_ns_ = 0;
    ++failure_count_;
  }

  // A launched process runs.
  bool is_launching() const { return phase_ == Phase::kLaunching; }
  // It ended, and the agent behind it is waited for.
  bool is_appearing() const { return phase_ == Phase::kAppearing; }
  // Since when every start has failed; 0 = an agent is there or may still come of the last one.
  std::uint64_t failed_since_ns() const {
    return phase_ == Phase::kWaiting && failure_count_ > 0 ? failed_ns_ : 0;
  }

 private:
  enum class Phase { kWaiting, kLaunching, kAppearing, kServed };
  void GiveUp(std::uint64_t now_ns) {
    if (now_ns - first_launch_ns_ >= kAppearMaxNs) return Failed(now_ns);
    phase_ = Phase::kWaiting;
    next_ns_ = now_ns;
  }
  Phase phase_ = Phase::kWaiting;
  unsigned failure_count_ = 0;         // since an agent was seen
  std::uint64_t next_ns_ = 0;          // with kWaiting
  std::uint64_t launched_ns_ = 0;      // 0 = never
  std::uint64_t first_launch_ns_ = 0;  // since an agent was seen, or a failure; 0 = none
  std::uint64_t ended_ns_ = 0;         // with kAppearing
  std::uint64_t failed_ns_ = 0;        // the first of the failures
};

}  // namespace stepwell::recorder
