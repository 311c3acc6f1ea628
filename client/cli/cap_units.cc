#include "client/cli/cap_units.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/number_units.h"

namespace stepwell::cli {
namespace {

constexpr NumberUnit kAges[] = {{"y", 365 * 86'400}, {"w", 7 * 86'400}, {"d", 86'400},
                                {"h", 3600},         {"m", 60},         {"s", 1}};
constexpr NumberUnit kCounts[] = {{"", 1}, {"k", 1000}, {"M", 1'000'000}, {"G", 1'000'000'000}};

constexpr char kAgeAllowed[] = "an age such as 30d, 2y or 1h30m (y, w, d, h, m, s), or none";
constexpr char kBytesAllowed[] = "bytes such as 50GiB, 1.5TB or 4096, or none";
constexpr char kSamplesAllowed[] = "a number of samples such as 1000000 or 1M, or none";

absl::Status Refused(std::string_view option, std::string_view text, const char* allowed) {
  const std::string name(option);
  const std::string given(text);
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", given, "'; allowed: ", allowed));
}

// What comes out is above 0, but for "none".
absl::StatusOr<std::int64_t> Checked(std::string_view option, std::string_view text,
                                     std::optional<std::int64_t> value, const char* allowed) {
  if (text == "none") return 0;
  if (!value.has_value() || *value < 1) return Refused(option, text, allowed);
  return *value;
}

}  // namespace

absl::StatusOr<std::int64_t> ParseAge(std::string_view option, std::string_view text) {
  if (text == "none") return 0;
  std::string_view rest = text;
  std::int64_t seconds = 0;
  // From years down, each unit once.
  const NumberUnit* last = nullptr;
  while (!rest.empty()) {
    NumberPart part;
    if (!TakeNumberPart(rest, part)) return Refused(option, text, kAgeAllowed);
    const NumberUnit* unit = FindUnit(kAges, part.unit);
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
  return Checked(option, text, ParseByteCount(text), kBytesAllowed);
}

absl::StatusOr<std::int64_t> ParseSamples(std::string_view option, std::string_view text) {
  return Checked(option, text, ParseNumber(text, kCounts), kSamplesAllowed);
}

std::string AgeText(std::int64_t seconds) {
  if (seconds == 0) return "none";
  std::string text;
  for (const NumberUnit& unit : kAges) {
    // Weeks are understood, days are said.
    if (unit.name == "w" || seconds < unit.factor) continue;
    absl::StrAppend(&text, seconds / unit.factor, std::string(unit.name));
    seconds %= unit.factor;
  }
  return text;
}

std::string BytesText(std::int64_t bytes) { return bytes == 0 ? "none" : ByteCountText(bytes); }

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
