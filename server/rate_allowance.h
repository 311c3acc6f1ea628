// RateAllowance: what one caller may still use of something that is given out at an even rate (a token bucket; tokens
// and buckets are other things here): it fills up to `burst` at `per_second`, and what is used is taken from it. As long
// as anything is left a use of any size is taken, and what it owes is waited for by the next: messages are not cut. So
// within any time t no more is used than burst + per_second * t, and once the largest use. A core; confined.
//
//   RateAllowance allowance({.per_second = 100, .burst = 1000}, now);
//   if (const absl::Duration wait = allowance.TryTake(1, now); wait > absl::ZeroDuration()) return ComeAgainIn(wait);
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

// Both above zero, and finite.
struct Rate {
  double per_second = 1;
  double burst = 1;
};

class RateAllowance {
 public:
  RateAllowance(const Rate& rate, SteadyTime now) : left_(rate.burst), seen_(now), rate_(rate) {}

  // Zero: taken. Else nothing was, and something is left in so long. Who can wait may do so until it is more than `kept`.
  // REQUIRES: 0 <= kept < burst.
  absl::Duration TryTake(double amount, SteadyTime now, double kept = 0) {
    Fill(now);
    if (left_ > kept) {
      left_ -= amount;
      return absl::ZeroDuration();
    }
    // Never zero, for whoever owes nothing has nothing either.
    return absl::Seconds((kept - left_) / rate_.per_second) + absl::Milliseconds(1);
  }
  // Of what was done already, or was too much to know before. What is owed ends at a minute's worth, so that
  // nobody is shut out for long by what he was not told of.
  void Spend(double amount, SteadyTime now) {
    Fill(now);
    const double floor = std::min(left_, -60 * rate_.per_second);
    left_ = std::max(left_ - amount, floor);
  }
  void GiveBack(double amount, SteadyTime now) {
    Fill(now);
    left_ = std::min(left_ + amount, rate_.burst);
  }
  // As a new one: to forget it gives nothing away.
  bool IsFull(SteadyTime now) {
    Fill(now);
    return left_ >= rate_.burst;
  }
  double left(SteadyTime now) {
    Fill(now);
    return left_;
  }

 private:
  void Fill(SteadyTime now) {
    if (now <= seen_)
      return;  // a thread that looked at the clock before another, and came after it
    left_ = std::min(rate_.burst, left_ + absl::ToDoubleSeconds(now - seen_) * rate_.per_second);
    seen_ = now;
  }

  double left_;  // below zero: owed
  SteadyTime seen_;
  Rate rate_;
};

}  // namespace stepwell
