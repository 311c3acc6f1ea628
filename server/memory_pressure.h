// MemoryPressure: what is to be done as the master's resident memory nears its limit: malloc gives back what it keeps between
// blocks, which its parts do not count, and of messages one at a time is let in until that has helped. A core, of one thread.
//
//   const MemoryPressure::Verdict verdict = pressure.Look(ResidentBytes(), now);
//   if (verdict.trims) malloc_trim(0);
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class MemoryPressure {
 public:
  // As often as it wants to be asked: what comes in within is little beside the room that is left.
  static constexpr absl::Duration kLookEach = absl::Milliseconds(100);

  // REQUIRES: limit_bytes > 0.
  explicit MemoryPressure(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  struct Verdict {
    bool trims = false;
    bool is_tight = false;
  };
  // `resident_bytes` < 0: nobody knows.
  Verdict Look(std::int64_t resident_bytes, SteadyTime now) {
    if (awaits_result_) trimmed_bytes_ = resident_bytes;
    // A trim walks through all heaps, some milliseconds, with each of them locked in turn: not for what grew by little.
    const bool is_high = resident_bytes > limit_bytes_ / 8 * 6;
    const bool has_grown = resident_bytes > trimmed_bytes_ + limit_bytes_ / 32;
    const bool trims = is_high && (has_grown || now >= trimmed_ + kTrimEach);
    if (trims) trimmed_ = now;
    awaits_result_ = trims;
    // Once it is, until there is some room again: else it would be by turns.
    is_tight_ = resident_bytes > limit_bytes_ / 32 * (is_tight_ ? 26 : 28);
    return {trims, is_tight_};
  }

 private:
  static constexpr absl::Duration kTrimEach = absl::Seconds(10);

  const std::int64_t limit_bytes_;
  // What was left after the last trim, as the look after it saw it.
  std::int64_t trimmed_bytes_ = 0;
  bool awaits_result_ = false;
  bool is_tight_ = false;
  SteadyTime trimmed_ = SteadyTime::InfinitePast();
};

}  // namespace stepwell
