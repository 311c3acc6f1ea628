// PairedSteps: the same training step with and without scopes, in turns, and what of its time the scopes
// were. Confined to one thread.
//
//   PairedSteps steps(recorder, 10 ms);
//   const PairedSteps::Result result = steps.Measure(5000, seed);
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/stepwell.h"

namespace stepwell::bench {

// A median and its 95 % confidence interval by order statistics: whatever the values' distribution is.
struct Interval {
  double low = 0;
  double median = 0;
  double high = 0;
};
Interval MedianInterval(std::vector<double> values);

class PairedSteps {
 public:
  // What a step has beside its work.
  enum class Added {
    kNothing,
    // As many bare reads of the clock as scopes need: what any measuring costs at least, for whoever comes
    // seldom finds the caches as the work, and the machine's other programs, left them.
    kClockReads,
    kScopes,
  };
  // Percent of the step without.
  struct Percent {
    Interval wall;
    Interval cpu;
  };
  struct Result {
    Percent scopes;
    Percent clock;
    // Of pairs of which neither has anything: an interval that zero does not lie in says that the pairs are
    // off by themselves.
    Percent nothing;
    // Of all steps with scopes, and of as many without beside them.
    std::int64_t switches_with = 0;
    std::int64_t switches_without = 0;
  };
  // `step` = about how long one takes. `recorder` is open and outlives this.
  PairedSteps(Recorder& recorder, std::chrono::microseconds step);

  // So many pairs of a step with scopes and one with nothing, and of each other kind a quarter of that. Which
  // kind comes when, and who begins, is left to chance (`seed`).
  Result Measure(int pair_count, std::uint32_t seed);

 private:
  struct Spent {
    double wall = 0;  // counts of the processor's counter
    double cpu_ns = 0;
    std::int64_t switches = 0;
  };
  struct Pairs {
    std::vector<double> wall;
    std::vector<double> cpu;
    std::int64_t switches_with = 0;
    std::int64_t switches_without = 0;
  };
  void Pair(Added added, bool is_added_first, Pairs& pairs);
  Spent Step(Added added);
  void Work(int times);

  Recorder& recorder_;
  std::vector<float> weights_;
  std::vector<float> values_;
  std::vector<float> sums_;  // of the turn under way
  int times_ = 1;
};

}  // namespace stepwell::bench
