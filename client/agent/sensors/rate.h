// Rate: a running total becomes a rate over the time that truly passed between two readings. There
// is no first zero, and a total that went back (an unplugged disk, a reset device) starts anew.
// Pure.
//
//   if (const std::optional<double> rate = sent_.Next(total, reading.Now())) reading.Add(s, *rate);
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace stepwell::agent {

class Rate {
 public:
  // Two readings closer than this make rates of counter steps, not of load. Below the shortest
  // interval of a sampler, 10 ms, by what a late thread may be early after it.
  static constexpr absl::Duration kSpanMin = absl::Milliseconds(5);

  // Per second. None at the first reading, after a total that went back, and too soon after the
  // last one, which then stays the one to compare with.
  std::optional<double> Next(std::uint64_t total, absl::Duration now) {
    if (seen_ && total >= total_ && now - read_at_ < kSpanMin) return std::nullopt;
    std::optional<double> rate;
    if (seen_ && total >= total_) {
      rate = static_cast<double>(total - total_) / absl::ToDoubleSeconds(now - read_at_);
    }
    seen_ = true;
    total_ = total;
    read_at_ = now;
    return rate;
  }
  void Forget() { seen_ = false; }

 private:
  bool seen_ = false;
  std::uint64_t total_ = 0;
  absl::Duration read_at_;
};

}  // namespace stepwell::agent
