// One hour of each kind of metric that a training cluster sends, at one sample a second, for tests
// and for the bench of the codec. The shapes are those of real gauges; the same seed gives the same
// samples. Header only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace stepwell::testing {

struct MetricKind {
  std::string name;
  std::string shape;
  std::vector<double> values;
};

struct TickKind {
  std::string name;
  std::string shape;
  std::vector<std::int64_t> integers;
};

inline constexpr std::size_t kHourSamples = 3600;

// Draws one sample after the other from `next`.
template <typename Next>
std::vector<double> Hour(Next next) {
  std::vector<double> values(kHourSamples);
  for (double& value : values) value = next();
  return values;
}

inline std::vector<MetricKind> MetricKinds(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto now_and_then = [&](double share) { return uniform(random) < share; };

  double busy = 85;
  const auto gpu_util = [&] {
    busy = 85 + 0.9 * (busy - 85) + 4 * normal(random);
    return std::clamp(std::round(busy), 0.0, 100.0);
  };
  double free_steps = 20000;
  const auto gpu_free_memory = [&] {
    if (now_and_then(0.03)) free_steps += std::round(20 * normal(random));
    return 2097152.0 * free_steps;
  };
  const auto net = [&] { return 2e6 * std::exp(0.25 * normal(random)); };
  const auto disk_iops = [&] { return now_and_then(0.25) ? std::round(400 * uniform(random)) : 0; };
  const auto disk_read = [&] {
    return now_and_then(0.25) ? 4096 * std::round(40000 * uniform(random)) : 0;
  };
  const auto disk_write = [&] {
    return now_and_then(0.2) ? 4096 * std::round(10000 * uniform(random)) : 0;
  };
  double pages = 4e6;
  const auto memory_free = [&] {
    pages += std::round(500 * normal(random));
    return 4096 * pages;
  };
  double load = 400;
  const auto cpu = [&] {
    load = 400 + 0.8 * (load - 400) + 25 * normal(random);
    return std::clamp(std::round(load), 0.0, 1000.0) / 10;
  };
  const auto timing = [&] { return std::round(2e8 * std::exp(0.1 * normal(random))) / 1e9; };
  double fit = 4;
  const auto loss = [&] {
    fit *= 0.9995;
    return static_cast<double>(static_cast<float>(fit + 0.02 * normal(random)));
  };
  const auto idle = [&] { return now_and_then(0.01) ? NAN : 0.0; };
  return {
      {"gpu_util", "whole percent, AR(1)", Hour(gpu_util)},
      {"gpu_free_memory", "steps of 2 MiB, 3 % of seconds change", Hour(gpu_free_memory)},
      {"net_throughput", "doubles of full entropy", Hour(net)},
      {"disk_iops", "75 % zeros", Hour(disk_iops)},
      {"disk_throughput_read", "75 % zeros, else pages", Hour(disk_read)},
      {"disk_throughput_write", "80 % zeros, else pages", Hour(disk_write)},
      {"memory_free", "random walk of pages", Hour(memory_free)},
      {"cpu_util_simple", "steps of 0.1", Hour(cpu)},
      {"timings", "lognormal seconds of whole nanoseconds", Hour(timing)},
      {"loss", "float32 in doubles", Hour(loss)},
      {"gauge with NaN", "zeros, 1 % NaN", Hour(idle)},
  };
}

inline std::vector<TickKind> TickKinds(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> jitter(0, 200);
  std::lognormal_distribution<double> step_us(std::log(2.5e5), 0.05);
  constexpr std::int64_t kStartUs = 1700000000000000;
  std::vector<std::int64_t> sampler, steps, sampled, counted;
  double at = 0;
  double step_no = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(kHourSamples); ++i) {
    sampler.push_back(kStartUs + i * 1000000 + static_cast<std::int64_t>(jitter(random)));
    steps.push_back(kStartUs + static_cast<std::int64_t>(at += step_us(random)));
    sampled.push_back(static_cast<std::int64_t>(step_no += 1e6 / step_us(random)));
    counted.push_back(1000 + i);
  }
  return {
      {"sampler times", "1 Hz, jitter of 200 us", sampler},
      {"step times", "lognormal steps of 250 ms", steps},
      {"sampler batches", "about 4 steps a second", sampled},
      {"step batches", "one after the other", counted},
  };
}

}  // namespace stepwell::testing
