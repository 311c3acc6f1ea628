#include "tests/faults/network/weather.h"

#include <cstdlib>
#include <sstream>

namespace stepwell::faults {
namespace {

// "300ms", "2s".
bool ParseDuration(const std::string& text, Weather::Duration& duration) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  if (end == text.c_str() || number < 0 || (unit != "ms" && unit != "s")) return false;
  duration = Weather::Duration(static_cast<std::int64_t>(number * (unit == "s" ? 1e6 : 1e3)));
  return true;
}

template <typename Integer>
bool ParseCount(const std::string& text, Integer& count) {
  char* end = nullptr;
  const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
  count = static_cast<Integer>(number);
  return !text.empty() && *end == '\0' && number > 0;
}

bool ParsePercent(const std::string& text, double& chance) {
  char* end = nullptr;
  chance = std::strtod(text.c_str(), &end) / 100;
  return end != text.c_str() && std::string(end) == "%" && chance > 0 && chance <= 1;
}

bool ParseHold(const std::string& way, Weather& weather) {
  weather.holds_up = way == "up" || way == "both";
  weather.holds_down = way == "down" || way == "both";
  return weather.holds_up || weather.holds_down;
}

bool ParseWord(const std::string& word, Weather& weather) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = word.substr(0, equals);
  const std::string value = word.substr(equals + 1);
  const std::size_t colon = value.find(':');
  const std::string first = value.substr(0, colon);
  const std::string second = colon == std::string::npos ? "" : value.substr(colon + 1);
  if (name == "stall") {
    return ParsePercent(first, weather.stall_chance) && ParseDuration(second, weather.stall);
  }
  if (name == "flap") {
    return ParseDuration(first, weather.flap_up) && ParseDuration(second, weather.flap_down);
  }
  if (name == "delay") return ParseDuration(value, weather.delay);
  if (name == "jitter") return ParseDuration(value, weather.jitter);
  if (name == "rate") return ParseCount(value, weather.bytes_per_second);
  if (name == "slice") return ParseCount(value, weather.slice_bytes);
  if (name == "reset") return ParseCount(value, weather.reset_bytes);
  return name == "hold" && ParseHold(value, weather);
}

}  // namespace

std::optional<Weather> Weather::Parse(const std::string& words) {
  Weather weather;
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    if (!ParseWord(word, weather)) return std::nullopt;
  }
  return weather;
}

}  // namespace stepwell::faults
