// DayTables: an hour of the load `day` that bytes are counted by: 8 machines of 8 GPUs at 1 Hz and a
// rank of 8 steps a second, 190 series, one time per tick of a machine and per step. Header only.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "storage/model.h"
#include "tests/support/metric_kinds.h"

namespace stepwell::bench {

inline constexpr int kDayMachines = 8;
inline constexpr int kDayMachineSeries = 23;
inline constexpr int kDayTimings = 6;
inline constexpr std::int64_t kHourUs = 3'600'000'000;

// How many series of a machine have this shape.
inline int SeriesOf(std::string_view kind) {
  if (kind == "gpu_util" || kind == "gpu_free_memory") return 8;
  if (kind == "net_throughput") return 2;
  return kind == "timings" || kind == "loss" || kind == "gauge with NaN" ? 0 : 1;
}

inline TickTable MachineHour(std::uint64_t seed, std::int64_t start_us) {
  TickTable table;
  table.tick_group = 1;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> jitter(0, 200);
  for (std::int64_t i = 0; i < 3600; ++i) {
    table.times_us.push_back(start_us + i * 1'000'000 + static_cast<std::int64_t>(jitter(random)));
    table.batches.push_back(static_cast<std::int32_t>(i * 8));
  }
  for (int copy = 0; copy < 8; ++copy) {
    for (const testing::MetricKind& kind : testing::MetricKinds(seed * 8 + copy)) {
      if (copy >= SeriesOf(kind.name)) continue;
      TickColumn& column = table.columns.emplace_back();
      column.series_no = SeriesNo{static_cast<std::int32_t>(table.columns.size())};
      column.values = kind.values;
    }
  }
  return table;
}

inline TickTable RankHour(std::uint64_t seed, std::int64_t start_us) {
  TickTable table;
  table.tick_group = 1;
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> step_us(std::log(1.25e5), 0.05);
  std::normal_distribution<double> normal;
  double at = 0;
  for (std::int32_t i = 0; i < 8 * 3600; ++i) {
    table.times_us.push_back(start_us + static_cast<std::int64_t>(at));
    table.batches.push_back(i);
    at += step_us(random);
  }
  for (int i = 0; i < kDayTimings; ++i) {
    TickColumn& column = table.columns.emplace_back();
    column.series_no = SeriesNo{i + 1};
    for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
      const double ns = 1.2e8 / (i + 1) * std::exp(0.1 * normal(random));
      column.values.push_back(std::round(ns) / 1e9);
    }
  }
  return table;
}

}  // namespace stepwell::bench
