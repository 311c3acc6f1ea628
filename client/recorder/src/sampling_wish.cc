#include "client/recorder/src/sampling_wish.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "client/recorder/src/json_text.h"
#include "client/recorder/src/sampled_names.h"

namespace stepwell::recorder {
namespace {

constexpr char kAllowedIntervals[] = "a duration like 250ms, from 10ms to 1h";

bool IsWithin(std::int64_t interval_us) {
  return interval_us >= SamplingWish::kIntervalMinUs && interval_us <= SamplingWish::kIntervalMaxUs;
}

// Microseconds of one; 0 = no such unit.
double UnitUs(std::string_view unit) {
  const struct {
    std::string_view name;
    double us;
  } units[] = {{"us", 1}, {"ms", 1e3}, {"", 1e6}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}};
  for (const auto& known : units) {
    if (unit == known.name) return known.us;
  }
  return 0;
}

std::string Listed(const std::vector<std::string>& words) {
  std::string json = "[";
  for (const std::string& word : words) {
    if (json.size() > 1) json += ", ";
    json += Quoted(word);
  }
  return json + "]";
}

// Tells which of `words` nobody samples; they are passed on, since the agent may know more.
template <typename Known>
void CheckWords(const char* what, const std::vector<std::string>& words, const Known& known,
                const char* allowed, std::vector<std::string>& remarks) {
  for (const std::string& word : words) {
    if (std::find(std::begin(known), std::end(known), word) != std::end(known)) continue;
    remarks.push_back(std::string(what) + " names '" + word + "': it must be " + allowed);
  }
}

void CheckNames(const SamplingWish& wish, std::vector<std::string>& remarks) {
  std::string groups;
  for (const std::string_view group : kSampledGroups) {
    groups += (groups.empty() ? "of " : ", ") + std::string(group);
  }
  constexpr char kMetrics[] = "a system metric (docs/metrics.md lists them)";
  CheckWords("STEPWELL_GROUPS (or options.groups)", wish.groups, kSampledGroups, groups.c_str(),
             remarks);
  CheckWords("STEPWELL_WITHOUT (or options.without)", wish.without, kSampledMetrics, kMetrics,
             remarks);
  CheckWords("STEPWELL_WITH (or options.with)", wish.with, kSampledMetrics, kMetrics, remarks);
}

}  // namespace

std::vector<std::string> SplitWords(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t first = part.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) continue;
    words.emplace_back(part.substr(first, part.find_last_not_of(kBlanks) + 1 - first));
  }
  return words;
}

std::int64_t ParseIntervalUs(std::string_view text) {
  double number = 0;
  // Not strtod: the trial's locale may want a comma.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  const double us = number * UnitUs(text.substr(static_cast<std::size_t>(end - text.data())));
  // Also false where it is no number.
  if (!(us >= SamplingWish::kIntervalMinUs && us <= SamplingWish::kIntervalMaxUs)) return -1;
  return static_cast<std::int64_t>(us);
}

SamplingWish ResolveSampling(SamplingWish wish, const Environment& environment,
                             std::vector<std::string>& remarks) {
  if (wish.interval_us != 0 && !IsWithin(wish.interval_us)) {
    remarks.push_back("options.interval_us is " + std::to_string(wish.interval_us) +
                      ": it must be 0 (the agent's default, now taken) or 10000 ... 3600000000");
    wish.interval_us = 0;
  } else if (const std::string text = ReadVariable(environment, "STEPWELL_INTERVAL");
             wish.interval_us == 0 && !text.empty()) {
    wish.interval_us = ParseIntervalUs(text);
    if (wish.interval_us < 0) {
      remarks.push_back("STEPWELL_INTERVAL is '" + text + "': it must be " + kAllowedIntervals +
                        "; the agent's default is taken");
      wish.interval_us = 0;
    }
  }
  const auto take = [&environment](std::vector<std::string>& words, const char* name) {
    if (words.empty()) words = SplitWords(ReadVariable(environment, name));
  };
  take(wish.groups, "STEPWELL_GROUPS");
  take(wish.without, "STEPWELL_WITHOUT");
  take(wish.with, "STEPWELL_WITH");
  CheckNames(wish, remarks);
  if (ReadVariable(environment, "STEPWELL_SYSTEM_METRICS") == "0") wish.is_on = false;
  return wish;
}

std::string ToJson(const SamplingWish& wish) {
  return std::string("{\"on\": ") + (wish.is_on ? "true" : "false") +
         ", \"interval_us\": " + std::to_string(wish.interval_us) +
         ", \"groups\": " + Listed(wish.groups) + ", \"without\": " + Listed(wish.without) +
         ", \"with\": " + Listed(wish.with) + "}";
}

}  // namespace stepwell::recorder
