// MemoryDebt: when malloc is to give back to the kernel what a flood was held in, hundreds of megabytes of it, which stay
// with it otherwise: once it is calm, or after a while where it never is. A core, of one thread.
//
//   debt.Owe(bytes, now);                      // what was received and is held no more
//   if (debt.IsDue(now)) malloc_trim(0), debt.Pay(now);
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class MemoryDebt {
 public:
  // Less is not worth a walk through all of a heap.
  static constexpr std::int64_t kBytesMin = 8 << 20;
  static constexpr absl::Duration kCalm = absl::Seconds(1);
  static constexpr absl::Duration kPayEach = absl::Seconds(10);

  void Owe(std::int64_t bytes, SteadyTime now) {
    if (bytes <= 0) return;
    bytes_ += bytes;
    calm_from_ = now + kCalm;
    if (bytes_ >= kBytesMin && !owes_) {
      owes_ = true;
      latest_ = now + kPayEach;
    }
  }
  // Infinite where nothing is owed.
  SteadyTime due() const {
    if (!owes_) return SteadyTime::InfiniteFuture();
    return std::max(std::min(calm_from_, latest_), paid_ + kPayEach);
  }
  bool IsDue(SteadyTime now) const { return owes_ && now >= due(); }
  void Pay(SteadyTime now) {
    bytes_ = 0;
    owes_ = false;
    paid_ = now;
  }

 private:
  std::int64_t bytes_ = 0;
  bool owes_ = false;
  SteadyTime calm_from_ = SteadyTime::InfinitePast();
  SteadyTime latest_ = SteadyTime::InfinitePast();
  SteadyTime paid_ = SteadyTime::InfinitePast();
};

}  // namespace stepwell
