#include "client/cli/units.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/time/time.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

constexpr Scale kBytes[] = {{0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
                            {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};
constexpr Scale kSeconds[] = {{86400, "d"}, {3600, "h"},  {60, "min"}, {1, "s"},
                              {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};

// Three significant digits without an exponent for 1 <= |value| < 10,000.
std::string Digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

template <std::size_t kCount>
std::string Scaled(double value, const Scale (&scales)[kCount], const char* suffix) {
  if (!std::isfinite(value)) return fmt::format("{} {}{}", value, scales[kCount - 1].unit, suffix);
  if (value == 0) return fmt::format("0 {}{}", scales[kCount - 1].unit, suffix);
  for (const Scale& scale : scales) {
    // 0.9995: what would be shown as 1,000 of the unit below.
    if (std::abs(value) < scale.factor * 0.9995 && &scale != &scales[kCount - 1]) continue;
    return fmt::format("{} {}{}", Digits(value / scale.factor), scale.unit, suffix);
  }
  return {};
}

}  // namespace

std::string CountText(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string Plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", CountText(count), noun, count == 1 ? "" : "s");
}

std::string SecondsText(double seconds) {
  if (seconds == 0) return "0 s";
  // Below 100 of a unit, the smaller unit reads better: 91.3 s rather than 1.52 min.
  if (std::abs(seconds) >= 1 && std::abs(seconds) < 600) return Digits(seconds) + " s";
  return Scaled(seconds, kSeconds, "");
}

std::string ValueText(double value, std::string_view unit) {
  if (unit == "bytes") return Scaled(value, kBytes, "");
  if (unit == "bytes/s") return Scaled(value, kBytes, "/s");
  if (unit == "seconds") return SecondsText(value);
  if (unit == "percent") return fmt::format("{:.1f} %", value);
  std::string number;
  const bool whole = value == std::floor(value);
  if ((whole || std::abs(value) >= 1000) && std::abs(value) < 1e15) {
    number = CountText(std::llround(value));
  } else {
    number = fmt::format("{:.4g}", value);
  }
  if (unit.empty() || unit == "1") return number;
  // "1/s" is said as "82.9 /s".
  const bool per = unit.substr(0, 2) == "1/";
  return fmt::format("{} {}", number, per ? unit.substr(1) : unit);
}

std::vector<std::string> PercentTexts(const std::vector<double>& shares) {
  // In tenths of a percent.
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0) * 1000;
  std::vector<std::int64_t> tenths;
  std::int64_t given = 0;
  for (const double share : shares) {
    tenths.push_back(static_cast<std::int64_t>(std::floor(share * 1000)));
    given += tenths.back();
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return shares[a] * 1000 - std::floor(shares[a] * 1000) >
           shares[b] * 1000 - std::floor(shares[b] * 1000);
  });
  for (const std::size_t i : order) {
    if (given >= std::llround(total)) break;
    ++tenths[i];
    ++given;
  }
  std::vector<std::string> texts;
  for (const std::int64_t tenth : tenths) {
    texts.push_back(fmt::format("{:.1f} %", static_cast<double>(tenth) / 10));
  }
  return texts;
}

std::string TimeText(std::int64_t time_us) {
  if (time_us == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMicros(time_us),
                          absl::UTCTimeZone());
}

std::string IsoTimeText(std::int64_t time_us) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(time_us),
                          absl::UTCTimeZone());
}

std::string BarText(double share, int columns) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0);
  const int eighths = static_cast<int>(std::lround(clamped * columns * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

}  // namespace stepwell::cli
