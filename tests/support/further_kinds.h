// Kinds of metrics and ticks beside those of metric_kinds.h, for the table of the codec and its tests:
// what a training loop or a user records, and the ends of the scale, from a constant to noise. They
// stand apart since the load `day` is made of the others. The same seed gives the same samples.
// Header only.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "tests/support/metric_kinds.h"

namespace stepwell::testing {

inline std::vector<MetricKind> FurtherMetricKinds(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto now_and_then = [&](double share) { return uniform(random) < share; };

  const auto constant = [] { return 81559.0; };
  double total = 1e12;
  const auto counter = [&] { return total += std::round(2e6 * std::exp(0.25 * normal(random))); };
  double degrees = 64;
  const auto temperature = [&] {
    if (now_and_then(0.1)) degrees += now_and_then((80 - degrees) / 32) ? 1 : -1;
    return degrees;
  };
  const auto power = [&] { return std::round(3.1e5 + 2e4 * normal(random)) / 1000; };
  const auto clock = [&] {
    return now_and_then(0.9) ? 1980.0 : 1980 - 15 * std::floor(uniform(random) * 8);
  };
  const auto events = [&] { return now_and_then(0.01) ? std::ceil(5 * uniform(random)) : 0; };
  double fit = 4;
  const auto loss = [&] {
    fit *= 0.9995;
    return fit + 0.02 * normal(random);
  };
  const auto norm = [&] {
    return static_cast<double>(static_cast<float>(std::exp(0.5 * normal(random))));
  };
  double step = 0;
  const auto rate = [&] {
    return 0.5e-3 * (1 + std::cos(std::numbers::pi * step++ / kHourSamples));
  };
  double level = 0.3;
  const auto accuracy = [&] {
    level += 0.00015;
    return std::round(256 * std::min(1.0, level + 0.02 * normal(random))) / 256;
  };
  const auto integers = [&] { return static_cast<double>(random() >> 48); };
  return {
      {"constant", "one value all hour", Hour(constant)},
      {"counter", "a running total of bytes, about 2 MB a second", Hour(counter)},
      {"temperature", "whole degrees, 10 % of seconds change by one", Hour(temperature)},
      {"power", "watts with three decimals", Hour(power)},
      {"clock", "steps of 15 MHz, 90 % the highest", Hour(clock)},
      {"sparse events", "99 % zeros, else 1 to 5", Hour(events)},
      {"loss double", "doubles of full mantissa, falling", Hour(loss)},
      {"gradient norm", "float32 in doubles, lognormal", Hour(norm)},
      {"learning rate", "a cosine, doubles of full mantissa", Hour(rate)},
      {"accuracy", "256ths", Hour(accuracy)},
      {"noise of 16 bits", "whole numbers, all alike", Hour(integers)},
      {"noise of doubles", "all of [0, 1) alike", Hour([&] { return uniform(random); })},
  };
}

inline std::vector<TickKind> FurtherTickKinds(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::int64_t kStartUs = 1700000000000000;
  std::vector<std::int64_t> regular, pausing, none, every_tenth, resumed;
  std::int64_t at = kStartUs;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(kHourSamples); ++i) {
    regular.push_back(kStartUs + i * 1000000);
    at += random() % 100 == 0 ? 30000000 : 120000 + static_cast<std::int64_t>(random() % 2000);
    pausing.push_back(at);
    none.push_back(-1);
    every_tenth.push_back(i / 10 * 10);
    resumed.push_back(5000 + i - (i > 2000 ? 700 : 0));
  }
  return {
      {"regular times", "1 Hz to the microsecond", regular},
      {"pausing times", "steps of 120 ms, each hundredth waits 30 s", pausing},
      {"no batches", "of a machine without a rank", none},
      {"batches of tens", "ten ticks each", every_tenth},
      {"resumed batches", "one after the other, once 700 back", resumed},
  };
}

}  // namespace stepwell::testing
