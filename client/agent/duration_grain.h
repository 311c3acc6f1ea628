// DurationGrain: how finely timings are kept. Those below a millisecond to the nanosecond; longer
// ones to 100 ns, which is at most 0.005 % of them. Two readings of a clock take 40 ns, and a thread
// comes back late by microseconds: digits below that are noise, which no codec makes smaller, and
// each costs 0.42 bytes of each sample for as long as it is kept (docs/decisions/0017). Pure;
// thread-safe.
#pragma once

#include <cstdint>

namespace stepwell::agent {

inline constexpr std::uint64_t kDurationGrainNs = 100;
inline constexpr std::uint64_t kExactDurationNsMax = 999'999;

// The nearest that is kept; of two equally near the even multiple, so that sums of many do not drift.
constexpr std::uint64_t KeptDurationNs(std::uint64_t ns) {
  if (ns <= kExactDurationNsMax) return ns;
  const std::uint64_t count = ns / kDurationGrainNs;
  const std::uint64_t rest = ns % kDurationGrainNs;
  const bool up = rest * 2 > kDurationGrainNs || (rest * 2 == kDurationGrainNs && count % 2 == 1);
  // Without a step beyond what the type holds.
  return up && ns <= UINT64_MAX - kDurationGrainNs ? (count + 1) * kDurationGrainNs
                                                   : count * kDurationGrainNs;
}

}  // namespace stepwell::agent
