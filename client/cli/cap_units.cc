#include "client/cli/cap_units.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepwell::cli {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr Unit kAges[] = {{"y", 365 * 86'400}, {"w", 7 * 86'400}, {"d", 86'400},
                          {"h", 3600},         {"m", 60},         {"s", 1}};
constexpr Unit kBytes[] = {{"PiB", INT64_C(1) << 50},
                           {"TiB", INT64_C(1) << 40},
                           {"GiB", INT64_C(1) << 30},
                           {"MiB", INT64_C(1) << 20},
                           {"KiB", INT64_C(1) << 10},
                           {"B", 1},
                           {"PB", INT64_C(1'000'000'000'000'000)},
                           {"TB", INT64_C(1'000'000'000'000)},
                           {"GB", 1'000'000'000},
                           {"MB", 1'000'000},
                           {"kB", 1000},
                           {"", 1}};
constexpr Unit kCounts[] = {{"", 1}, {"k", 1000}, {"M", 1'000'000}, {"G", 1'000'000'000}};

constexpr char kAgeAllowed[] = "an age such as 30d, 2y or 1h30m (y, w, d, h, m, s), or none";
constexpr char kBytesAllowed[] = "bytes such as 50GiB, 1.5TB or 4096, or none";
constexpr char kSamplesAllowed[] = "a number of samples such as 1000000 or 1M, or none";
// Of a fraction; more are refused.
constexpr std::size_t kDecimalsMax = 18;

absl::Status Refused(std::string_view option, std::string_view text, const char* allowed) {
  const std::string name(option);
  const std::string given(text);
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", given, "'; allowed: ", allowed));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

struct Part {
  std::string digits;  // with at most one point
  std::string_view unit;
};

// Takes "30d" off the front: digits with at most one point, then letters. False where there is none.
bool TakePart(std::string_view& text, Part& part) {
  const auto digits = static_cast<std::size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return !IsDigit(c) && c != '.'; }) -
      text.begin());
  part.digits = text.substr(0, digits);
  double number = 0;
  if (digits == 0 || !IsDigit(text[0]) || !absl::SimpleAtod(part.digits, &number)) return false;
  text.remove_prefix(digits);
  const auto letters = static_cast<std::size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return IsDigit(c) || c == '.'; }) -
      text.begin());
  part.unit = text.substr(0, letters);
  text.remove_prefix(letters);
  return true;
}

// So many of the unit, which are a whole number; nothing where they are not, or more than 63 bits hold.
std::optional<std::int64_t> WholeOf(const std::string& digits, const Unit& unit) {
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::string decimals = digits.substr(std::min(point + 1, digits.size()));
  std::int64_t number = 0;
  if (decimals.size() > kDecimalsMax ||
      !absl::SimpleAtoi(digits.substr(0, point) + decimals, &number)) {
    return std::nullopt;
  }
  std::int64_t divisor = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) divisor *= 10;
  const absl::int128 product = absl::int128(number) * unit.factor;
  if (product % divisor != 0 || product / divisor > INT64_MAX) return std::nullopt;
  return static_cast<std::int64_t>(product / divisor);
}

template <std::size_t kCount>
const Unit* Find(const Unit (&units)[kCount], std::string_view name) {
  const Unit* found = std::find_if(std::begin(units), std::end(units),
                                   [&](const Unit& unit) { return unit.name == name; });
  return found == std::end(units) ? nullptr : found;
}

// One number with one unit. What comes out is whole, and above 0.
template <std::size_t kCount>
absl::StatusOr<std::int64_t> ParseOne(std::string_view option, std::string_view text,
                                      const Unit (&units)[kCount], const char* allowed) {
  if (text == "none") return 0;
  std::string_view rest = text;
  Part part;
  if (!TakePart(rest, part) || !rest.empty()) return Refused(option, text, allowed);
  const Unit* unit = Find(units, part.unit);
  if (unit == nullptr) return Refused(option, text, allowed);
  const std::optional<std::int64_t> value = WholeOf(part.digits, *unit);
  if (!value.has_value() || *value < 1) return Refused(option, text, allowed);
  return *value;
}

}  // namespace

absl::StatusOr<std::int64_t> ParseAge(std::string_view option, std::string_view text) {
  if (text == "none") return 0;
  std::string_view rest = text;
  std::int64_t seconds = 0;
  // From years down, each unit once.
  const Unit* last = nullptr;
  while (!rest.empty()) {
    Part part;
    if (!TakePart(rest, part)) return Refused(option, text, kAgeAllowed);
    const Unit* unit = Find(kAges, part.unit);
    if (unit == nullptr || (last != nullptr && unit <= last)) {
      return Refused(option, text, kAgeAllowed);
    }
    const std::optional<std::int64_t> whole = WholeOf(part.digits, *unit);
    if (!whole.has_value() || __builtin_add_overflow(seconds, *whole, &seconds)) {
      return Refused(option, text, kAgeAllowed);
    }
    last = unit;
  }
  if (seconds < 1) return Refused(option, text, kAgeAllowed);
  return seconds;
}

absl::StatusOr<std::int64_t> ParseBytes(std::string_view option, std::string_view text) {
  return ParseOne(option, text, kBytes, kBytesAllowed);
}

absl::StatusOr<std::int64_t> ParseSamples(std::string_view option, std::string_view text) {
  return ParseOne(option, text, kCounts, kSamplesAllowed);
}

std::string AgeText(std::int64_t seconds) {
  if (seconds == 0) return "none";
  std::string text;
  for (const Unit& unit : kAges) {
    // Weeks are understood, days are said.
    if (unit.name == "w" || seconds < unit.factor) continue;
    absl::StrAppend(&text, seconds / unit.factor, std::string(unit.name));
    seconds %= unit.factor;
  }
  return text;
}

std::string BytesText(std::int64_t bytes) {
  if (bytes == 0) return "none";
  // The unit of which it is the fewest whole ones.
  const Unit* best = Find(kBytes, "B");
  for (const Unit& unit : kBytes) {
    if (bytes % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  }
  return absl::StrCat(bytes / best->factor, std::string(best->name));
}

std::string SamplesText(std::int64_t samples) {
  return samples == 0 ? "none" : absl::StrCat(samples);
}

const std::vector<CapOption>& CapOptions() {
  static const std::vector<CapOption> options = {
      {"raw-age", "AGE", "samples live so long after the day on which they came: 30d, 2y",
       "raw_age_seconds", ParseAge, AgeText, &v1::Caps::has_raw_age_seconds,
       &v1::Caps::raw_age_seconds, &v1::Caps::set_raw_age_seconds},
      {"rollup-age", "AGE", "rollups likewise; never less than --raw-age", "rollup_age_seconds",
       ParseAge, AgeText, &v1::Caps::has_rollup_age_seconds, &v1::Caps::rollup_age_seconds,
       &v1::Caps::set_rollup_age_seconds},
      {"bytes", "BYTES", "of a trial's samples and rollups, or of a group of it: 50GiB",
       "trial_bytes", ParseBytes, BytesText, &v1::Caps::has_trial_bytes, &v1::Caps::trial_bytes,
       &v1::Caps::set_trial_bytes},
      {"samples", "N", "of one series: 1000000, 1M", "series_samples", ParseSamples, SamplesText,
       &v1::Caps::has_series_samples, &v1::Caps::series_samples, &v1::Caps::set_series_samples},
      {"window", "AGE", "a trial records so long from its first start on: 5m",
       "profiling_window_seconds", ParseAge, AgeText, &v1::Caps::has_profiling_window_seconds,
       &v1::Caps::profiling_window_seconds, &v1::Caps::set_profiling_window_seconds},
      {"trace-bytes", "BYTES", "of one trace; a larger one is refused: 256MiB", "trace_bytes",
       ParseBytes, BytesText, &v1::Caps::has_trace_bytes, &v1::Caps::trace_bytes,
       &v1::Caps::set_trace_bytes},
      {"traces-bytes", "BYTES", "of all traces of a trial: 1GiB", "trial_trace_bytes", ParseBytes,
       BytesText, &v1::Caps::has_trial_trace_bytes, &v1::Caps::trial_trace_bytes,
       &v1::Caps::set_trial_trace_bytes},
      {"trace-age", "AGE", "traces live so long after their upload: 30d", "trace_age_seconds",
       ParseAge, AgeText, &v1::Caps::has_trace_age_seconds, &v1::Caps::trace_age_seconds,
       &v1::Caps::set_trace_age_seconds},
  };
  return options;
}

const CapOption* FindCap(const std::string& field) {
  const auto& options = CapOptions();
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const CapOption& option) { return field == option.field; });
  return found == options.end() ? nullptr : &*found;
}

}  // namespace stepwell::cli
