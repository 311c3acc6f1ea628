// PairedSteps: the same training step with and without scopes, in turns, and what of its time the scopes
// were. Confined to one thread.
//
//   const PairedSteps::Result result = PairedSteps(recorder, 10 ms).Measure(5000);
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
  // Percent of the step without scopes.
  struct Result {
    Interval wall;
    Interval cpu;
    // Of all steps with, and of all without.
    std::int64_t switches_with = 0;
    std::int64_t switches_without = 0;
  };
  // `step` = about how long one takes. `recorder` is open and outlives this.
  PairedSteps(Recorder& recorder, std::chrono::microseconds step);

  // Who begins a pair is left to chance (`seed`).
  Result Measure(int pair_count, std::uint32_t seed);

 private:
  struct Spent {
    double wall_ns = 0;
    double cpu_ns = 0;
    std::int64_t switches = 0;
  };
  Spent Step(bool with_scopes);
  void Work(int times);

  Recorder& recorder_;
  std::vector<float> weights_;
  std::vector<float> values_;
  int times_ = 1;
};

}  // namespace stepwell::bench
