// SamplingWish is what the trial wants sampled of its machine and of its process, and how often:
// the `sampling` of writer.json. The agent obeys it; the recorder samples nothing itself. A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/recorder/src/environment.h"

namespace stepwell::recorder {

struct SamplingWish {
  static constexpr std::int64_t kIntervalMinUs = 10'000;
  static constexpr std::int64_t kIntervalMaxUs = 3'600'000'000;

  bool is_on = true;
  std::int64_t interval_us = 0;           // 0 = the agent's default
  std::vector<std::string> groups = {};   // empty = all
  std::vector<std::string> without = {};  // metrics switched off
  std::vector<std::string> with = {};     // metrics that are taken on request only

  friend bool operator==(const SamplingWish& a, const SamplingWish& b) = default;
};

// The words of "cpu, gpu": what lies between commas, without blanks around it.
std::vector<std::string> SplitWords(std::string_view text);

// "250ms", "1.5s", "2m", "1h", "10000us", or a number of seconds. -1 = none of these, or not within
// what SamplingWish allows.
std::int64_t ParseIntervalUs(std::string_view text);

// Fills what `wish` leaves open from STEPWELL_INTERVAL, STEPWELL_GROUPS, STEPWELL_WITHOUT,
// STEPWELL_WITH and STEPWELL_SYSTEM_METRICS. An interval that cannot be is told in `remarks`, and
// the agent's default is taken; a name that no sensor has is told, too, and kept. Pure.
SamplingWish ResolveSampling(SamplingWish wish, const Environment& environment,
                             std::vector<std::string>& remarks);

std::string ToJson(const SamplingWish& wish);

}  // namespace stepwell::recorder
