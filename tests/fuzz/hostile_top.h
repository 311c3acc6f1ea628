// HostileTop: any metrics of a trial and of its machines, as `stepwell top` shows them: names,
// units, labels and values are what trainings made them. Each line is as wide as the screen at
// most, of characters that it knows, and moves no cursor. Header only; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "client/cli/top_metrics.h"
#include "tests/fuzz/hostile_bytes.h"
#include "tests/fuzz/slow_text.h"

namespace stepwell::testing {

// One of `known`, or so many bytes.
template <std::size_t kCount>
std::string TakeWord(HostileBytes& input, const char* const (&known)[kCount]) {
  const auto choice = input.Take<std::uint8_t>();
  if (choice < kCount) return known[choice];
  return std::string(input.TakeBytes(choice - kCount));
}

inline cli::TopMetric TakeMetric(HostileBytes& input) {
  static constexpr const char* kGroups[] = {"gpu",     "cpu",   "memory",  "disk",
                                            "network", "agent", "training"};
  static constexpr const char* kNames[] = {
      "gpu_util",     "gpu_used_memory", "gpu_total_memory",   "cpu_util_process",
      "memory_total", "memory_used",     "clock_offset_error", "clock_offset"};
  static constexpr const char* kUnits[] = {"",        "1",       "percent", "bytes",
                                           "bytes/s", "seconds", "1/s"};
  static constexpr const char* kLabels[] = {"agent", "device", "rank", "trial", "mount"};
  static constexpr const char* kValues[] = {"", "0", "1", "-1", "9"};
  cli::TopMetric metric;
  metric.group = TakeWord(input, kGroups);
  metric.name = TakeWord(input, kNames);
  metric.unit = TakeWord(input, kUnits);
  metric.value = input.Take<double>();
  for (int labels = input.Take<std::uint8_t>() % 4; labels > 0; --labels) {
    const std::string name = TakeWord(input, kLabels);
    metric.labels[name] = TakeWord(input, kValues);
  }
  // Of those that a master keeps.
  metric.time_us = input.Take<std::int64_t>() & INT64_MAX;
  metric.interval_us = input.Take<std::uint32_t>();
  metric.history.resize(input.Take<std::uint8_t>() % (cli::kTopBuckets + 1));
  for (double& value : metric.history) value = input.Take<double>();
  return metric;
}

inline void ReadHostileTop(HostileBytes& input) {
  cli::TopLook look;
  look.columns = 40 + input.Take<std::uint8_t>() % 93;
  const auto form = input.Take<std::uint8_t>();
  look.charset = form % 2 == 0 ? cli::Charset::kUtf8 : cli::Charset::kAscii;
  look.all_metrics = (form & 2) != 0;
  cli::TopData data;
  if ((form & 4) != 0) data.machine = "node-7";
  for (int metrics = 0; metrics < 32 && !input.at_end(); ++metrics) {
    data.metrics.push_back(TakeMetric(input));
  }
  const std::vector<std::string> lines = cli::TopMetricLines(data, look);
  // Three titles for each machine, one of the trial's own, and a blank line before each.
  STEPWELL_CHECK(lines.size() <= data.metrics.size() * 7 + 2);
  for (const std::string& line : lines) {
    const SlowText text = ReadSlowly(line);
    STEPWELL_CHECK(text.is_utf8 && !text.has_control);
    STEPWELL_CHECK(cli::ColumnsOf(line) <= look.columns);
    const bool is_ascii =
        std::all_of(line.begin(), line.end(), [](unsigned char c) { return c < 0x80; });
    STEPWELL_CHECK(look.charset == cli::Charset::kUtf8 || is_ascii);
  }
}

}  // namespace stepwell::testing
