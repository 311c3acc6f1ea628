#include "client/demo/adam.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stepwell::demo {
namespace {

constexpr double kMeanDecay = 0.9;
constexpr double kSquareDecay = 0.999;
constexpr float kSmall = 1e-8f;
constexpr double kRateMax = 3e-3;
constexpr double kRateLastShare = 0.05;
constexpr double kWarmUpSteps = 50;

}  // namespace

Adam::Adam(std::size_t parameter_count) : means_(parameter_count), squares_(parameter_count) {}

void Adam::Step(std::span<const float> gradients, double rate, std::span<float> parameters) {
  mean_decay_ *= kMeanDecay;
  square_decay_ *= kSquareDecay;
  // Both averages begin at zero; this undoes what that takes away.
  const auto scale = static_cast<float>(rate * std::sqrt(1 - square_decay_) / (1 - mean_decay_));
  const auto mean_share = static_cast<float>(1 - kMeanDecay);
  const auto square_share = static_cast<float>(1 - kSquareDecay);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float gradient = gradients[i];
    means_[i] += mean_share * (gradient - means_[i]);
    squares_[i] += square_share * (gradient * gradient - squares_[i]);
    parameters[i] -= scale * means_[i] / (std::sqrt(squares_[i]) + kSmall);
  }
}

double LearningRate(std::int64_t step, double progress) {
  const double warm_up = std::min(1.0, (static_cast<double>(step) + 1) / kWarmUpSteps);
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(progress, 0.0, 1.0)));
  return kRateMax * warm_up * (kRateLastShare + (1 - kRateLastShare) * cosine);
}

}  // namespace stepwell::demo
