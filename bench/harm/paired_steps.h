// PairedSteps: the same training step with and without scopes, in turns, and what of its time the scopes
// were. Confined to one thread.
//
//   PairedSteps steps(recorder, 10 ms);
//   const PairedSteps::Result result = steps.Measure(PairedSteps::Added::kScopes, 5000, seed);
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
  struct Result {
    Interval wall;
    Interval cpu;
    // Of all steps with, and of all without.
    std::int64_t switches_with = 0;
    std::int64_t switches_without = 0;
  };
  // `step` = about how long one takes. `recorder` is open and outlives this.
  PairedSteps(Recorder& recorder, std::chrono::microseconds step);

  // Pairs of a step with `added` and one with nothing. Who begins is left to chance (`seed`).
  Result Measure(Added added, int pair_count, std::uint32_t seed);

 private:
  struct Spent {
    double wall_ns = 0;
    double cpu_ns = 0;
    std::int64_t switches = 0;
  };
  Spent Step(Added added);
  void Work(int times);

  Recorder& recorder_;
  std::vector<float> weights_;
  std::vector<float> values_;
  int times_ = 1;
};

}  // namespace stepwell::bench
