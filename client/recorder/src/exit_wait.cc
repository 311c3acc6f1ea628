#include "client/recorder/src/exit_wait.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace stepwell::recorder {

std::int64_t ReadExitWaitMs(const Environment& environment) {
  constexpr std::int64_t kDefaultMs = 5000;
  constexpr double kSecondsMax = 3600;
  const std::string text = ReadVariable(environment, "STEPWELL_EXIT_WAIT");
  double seconds = 0;
  // Not strtod: the trial's locale may want a comma.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(seconds)) return kDefaultMs;
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, kSecondsMax) * 1000);
}

}  // namespace stepwell::recorder
