// TopMetric: one series of `stepwell top` as it is now and was lately. A value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stepwell::cli {

// Sparklines have so many values, and cover at most 5 minutes.
inline constexpr int kTopBuckets = 60;
inline constexpr int kTopBucketSecondsMax = 5;

// The newest value of one series that is no timing, and what it was lately.
struct TopMetric {
  std::string group;
  std::string name;
  std::string unit;
  std::map<std::string, std::string> labels;
  double value = 0;
  std::int64_t time_us = 0;
  // Means of kTopBuckets equal parts of the history, oldest first; NaN = no sample. May be empty.
  std::vector<double> history;
  // Between two samples, as far as the history shows; 0 = it does not.
  std::int64_t interval_us = 0;

  // Empty = it has none of that name.
  std::string Label(const std::string& label) const;
  // Of a machine, a device or a process; false: what the trial recorded itself.
  bool is_system() const;
};

}  // namespace stepwell::cli
