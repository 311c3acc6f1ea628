// Adam (Kingma and Ba, 2015) with the learning rate's schedule. Confined to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepwell::demo {

class Adam {
 public:
  explicit Adam(std::size_t parameter_count);

  // REQUIRES: both have parameter_count elements.
  void Step(std::span<const float> gradients, double rate, std::span<float> parameters);

 private:
  std::vector<float> means_, squares_;
  double mean_decay_ = 1;  // of the powers of the decay rates so far
  double square_decay_ = 1;
};

// A short warm-up, then half a cosine down to a twentieth. `progress` of the training: 0 ... 1.
double LearningRate(std::int64_t step, double progress);

}  // namespace stepwell::demo
