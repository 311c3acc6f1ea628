#include "client/recorder/src/exit_wait.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace stepwell::recorder {
namespace {

constexpr std::int64_t kDefaultMs = 5000;
constexpr double kSecondsMax = 3600;
constexpr char kVariable[] = "STEPWELL_EXIT_WAIT";

// NaN = no number.
double Seconds(const std::string& text) {
  double seconds = 0;
  // Not strtod: the trial's locale may want a comma.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && std::isfinite(seconds) ? seconds : std::nan("");
}

}  // namespace

std::int64_t ReadExitWaitMs(const Environment& environment) {
  const double seconds = Seconds(ReadVariable(environment, kVariable));
  if (std::isnan(seconds)) return kDefaultMs;
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, kSecondsMax) * 1000);
}

std::string ExitWaitRemark(const Environment& environment) {
  const std::string text = ReadVariable(environment, kVariable);
  const double seconds = Seconds(text);
  if (text.empty() || (seconds >= 0 && seconds <= kSecondsMax)) return "";
  const std::string taken = std::isnan(seconds) ? "5" : seconds < 0 ? "0" : "3600";
  return std::string(kVariable) + " is '" + text +
         "': it must be a number of seconds, 0 ... 3600; " + taken + " is taken";
}

}  // namespace stepwell::recorder
