// EndedTicks: where the ticks of an earlier agent ended, whose trial went on without an agent: a
// line in the directory of its sampler. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepwell::agent {

struct EndedTicks {
  std::int64_t last_time_us = 0;
  std::int64_t interval_us = 0;
  // Of a tick; 0 = none was wanted then.
  std::uint64_t sample_count = 0;
  friend bool operator==(const EndedTicks& a, const EndedTicks& b) = default;
};

std::string TextOf(const EndedTicks& ended);
// Nothing where it is none, or says what no agent can have had.
std::optional<EndedTicks> ParseEndedTicks(const std::string& text);

}  // namespace stepwell::agent
