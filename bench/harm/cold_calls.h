// ColdCalls: what single calls cost that find the caches as a training leaves them, beside a bare read of
// the clock that finds them so, too. Between any two of them some megabytes are walked through: a call has
// its lines, and what tells where its pages lie, from memory that all cores share, or from behind it. Both
// sides are of one loop, in turns, so that a neighbour's work hits them alike. Confined to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/stepwell.h"

namespace stepwell::bench {

class ColdCalls {
 public:
  // Nanoseconds, less what timing nothing takes.
  struct Cost {
    double tenth = 0;  // a tenth of the calls was faster
    double median = 0;
  };
  enum Kind : int { kNothing, kClock, kScopeBegin, kScopeEnd, kRecord, kStepEnd, kKindCount };
  static const char* NameOf(Kind kind);

  // `walked_bytes` are walked through before each call. `recorder` is open and outlives this.
  ColdCalls(Recorder& recorder, std::size_t walked_bytes);

  // Of each kind, `count` calls. Whoever's turn it is is left to chance (`seed`).
  std::vector<Cost> Measure(int count, std::uint32_t seed);

 private:
  void Walk();

  Recorder& recorder_;
  std::vector<std::uint64_t> walked_;
};

}  // namespace stepwell::bench
