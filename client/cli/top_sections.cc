#include "client/cli/top_sections.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr int kIndent = 2;
constexpr int kValueColumns = 11;  // "1,023 MiB/s", "12,345 /s"
constexpr int kNameColumnsMin = 16;
constexpr int kNameColumnsMax = 40;
constexpr int kBarColumnsMin = 6;
constexpr int kBarColumnsMax = 20;
constexpr int kSparkColumnsMin = 10;
// What lies so far, and two of its own intervals, behind its machine's newest sample is not sampled
// any more: a device that was lost or hangs.
constexpr std::int64_t kDeadUs = 10'000'000;
// Of what has not shown its interval: no sensor's is longer unless all are.
constexpr std::int64_t kIntervalUsMax = 10'000'000;

// What a metric is a part of.
struct Whole {
  std::string_view part;
  std::string_view whole;
};
constexpr Whole kWholes[] = {
    {"memory_used", "memory_total"},
    {"memory_container_used", "memory_container_limit"},
    {"memory_process_resident", "memory_total"},
    {"gpu_used_memory", "gpu_total_memory"},
    {"gpu_power", "gpu_power_limit"},
};

using Metrics = std::vector<const TopMetric*>;

// Labels that say nothing here: the section's title does, or all have the same.
std::set<std::string> HiddenLabels(const Metrics& metrics) {
  std::set<std::string> hidden = {"agent"};
  if (metrics.empty()) return hidden;
  for (const auto& [name, value] : metrics.front()->labels) {
    const bool is_common = std::all_of(metrics.begin(), metrics.end(),
                                       [&, &name = name, &value = value](const auto* m) {
                                         const auto found = m->labels.find(name);
                                         return found != m->labels.end() && found->second == value;
                                       });
    // A lone GPU is still named; a lone rank is not.
    if (is_common && name != "device") hidden.insert(name);
  }
  return hidden;
}

// "device=GPU-1a2b" is said as "GPU-1a2b": the value tells what it is.
std::string ShortLabels(const TopMetric& metric, const std::set<std::string>& hidden) {
  std::vector<std::string> words;
  for (const auto& [name, value] : metric.labels) {
    if (hidden.contains(name)) continue;
    const bool speaks = name == "device" || name == "mount" || name == "interface";
    words.push_back(speaks ? value : absl::StrCat(name, "=", value));
  }
  return absl::StrJoin(words, " ");
}

// Columns of a line; 0 = not shown.
struct Widths {
  int name = 0;
  int bar = 0;
  int spark = 0;
};

Widths WidthsFor(int columns, int name_longest) {
  Widths widths;
  const int name_most = std::clamp(columns * 2 / 5, kNameColumnsMin, kNameColumnsMax);
  widths.name = std::clamp(name_longest, kNameColumnsMin, name_most);
  const int left = columns - kIndent - widths.name - 1 - kValueColumns - 2;
  if (left < kBarColumnsMin) return widths;
  widths.bar = std::min(left, kBarColumnsMax);
  if (left < kBarColumnsMin + 2 + kSparkColumnsMin) return widths;
  widths.bar = std::clamp(left * 2 / 5, kBarColumnsMin, kBarColumnsMax);
  widths.spark = std::min(left - widths.bar - 2, kTopBuckets);
  return widths;
}

// In at most `columns` where a number can be; its unit goes first.
std::string ValueOf(const TopMetric& metric, int columns) {
  if (std::isnan(metric.value)) return "NaN";
  if (std::isinf(metric.value)) return metric.value > 0 ? "Infinity" : "-Infinity";
  std::string text = ValueText(metric.value, metric.unit);
  return ColumnsOf(text) <= columns ? text : ValueText(metric.value, "");
}

std::string SpanText(int seconds) {
  return seconds % 60 == 0 ? absl::StrCat("last ", seconds / 60, " min")
                           : absl::StrCat("last ", seconds, " s");
}

Tone ToneOf(double share) {
  if (share >= 0.95) return Tone::kBad;
  return share >= 0.8 ? Tone::kWarn : Tone::kGood;
}

std::string SparkOf(const TopMetric& metric, double whole, int columns, Charset charset) {
  if (metric.history.empty() || columns == 0) return {};
  double low = 0;
  double high = whole;
  if (high <= 0) {
    bool any = false;
    for (const double value : metric.history) {
      if (!std::isfinite(value)) continue;
      low = any ? std::min(low, value) : value;
      high = any ? std::max(high, value) : value;
      any = true;
    }
    // A rate or a size is compared with nothing; a loss with where it came from.
    if (metric.is_system()) low = std::min(low, 0.0);
  }
  // Of a large number one more is the same.
  if (!(high > low)) high = low + std::max(1.0, std::abs(low));
  return SparkText(metric.history, low, high, columns, charset);
}

// Percent is of 100; others of the metric that is their whole; 0 = nothing to compare with.
double WholeOf(const TopMetric& metric, const std::vector<TopMetric>& all) {
  // 100 is one processor there.
  if (metric.unit == "percent") return metric.name == "cpu_util_process" ? 0 : 100;
  const auto* known = std::find_if(std::begin(kWholes), std::end(kWholes),
                                   [&](const Whole& whole) { return whole.part == metric.name; });
  if (known == std::end(kWholes)) return 0;
  const auto found = std::find_if(all.begin(), all.end(), [&](const TopMetric& other) {
    return other.name == known->whole && other.Label("agent") == metric.Label("agent") &&
           other.Label("device") == metric.Label("device");
  });
  return found == all.end() ? 0 : found->value;
}

// Of clock_offset its machine's clock_offset_error; null = it has none.
const TopMetric* ErrorOf(const TopMetric& metric, const std::vector<TopMetric>& all) {
  if (metric.group != "agent") return nullptr;  // a trial's own may be named as it likes
  const auto found = std::find_if(all.begin(), all.end(), [&](const TopMetric& other) {
    return other.group == metric.group && other.labels == metric.labels &&
           other.name == absl::StrCat(metric.name, "_error");
  });
  return found == all.end() ? nullptr : &*found;
}

using Newest = std::map<std::string, std::int64_t>;  // of all metrics, by agent

Newest NewestOf(const std::vector<TopMetric>& metrics) {
  Newest newest;
  for (const TopMetric& metric : metrics) {
    if (!metric.is_system()) continue;
    std::int64_t& time_us = newest[metric.Label("agent")];
    time_us = std::max(time_us, metric.time_us);
  }
  return newest;
}

// How long its machine has been sampled without it; 0 = it is alive. What a trial records itself
// comes when it comes.
std::int64_t DeadForUs(const TopMetric& metric, const Newest& newest) {
  if (!metric.is_system()) return 0;
  const auto found = newest.find(metric.Label("agent"));
  const std::int64_t age_us = found == newest.end() ? 0 : found->second - metric.time_us;
  const std::int64_t interval_us = metric.interval_us > 0 ? metric.interval_us : kIntervalUsMax;
  return age_us > std::max(kDeadUs, 2 * interval_us) ? age_us : 0;
}

int BarAt(const Widths& widths) { return kIndent + widths.name + 1 + kValueColumns + 2; }
int SparkAt(const Widths& widths) { return BarAt(widths) + widths.bar + 2; }

// What tells two lines apart is more than what they have in common: where both do not fit, the
// name gives way.
void AddName(const TopMetric& metric, const std::set<std::string>& hidden, int columns,
             TopLine& line) {
  const std::string labels = ShortLabels(metric, hidden);
  const int name_columns = ColumnsOf(metric.name);
  const int label_room = std::max(columns - name_columns - 1, columns * 2 / 5);
  const std::string tail = FitTail(labels, label_room, line.charset());
  const int label_columns = tail.empty() ? 0 : ColumnsOf(tail) + 1;
  const int end = line.column() + columns;
  line.Add(metric.name, Tone::kPlain, columns - label_columns);
  if (!tail.empty()) line.PadTo(line.column() + 1).Add(tail, Tone::kDim, end - line.column());
}

// Where its value and bar would be.
void AddAge(std::int64_t age_us, const Widths& widths, TopLine& line) {
  line.AddRight("-", kValueColumns, Tone::kDim);
  line.PadTo(BarAt(widths));
  const std::string age = SecondsText(static_cast<double>(age_us) * 1e-6);
  const std::string text = absl::StrCat("no sample for ", age);
  line.Add(ColumnsOf(text) <= line.left() ? text : age, Tone::kWarn);
}

std::string LineOf(const TopMetric& metric, const std::set<std::string>& hidden,
                   const Widths& widths, const std::vector<TopMetric>& all, const Newest& newest,
                   const TopLook& look) {
  TopLine line(look);
  line.PadTo(kIndent);
  AddName(metric, hidden, widths.name, line);
  line.PadTo(kIndent + widths.name + 1);
  if (const std::int64_t age_us = DeadForUs(metric, newest); age_us > 0) {
    AddAge(age_us, widths, line);
    return line.Take();
  }
  // Below what it is known to, a number says nothing but that.
  const TopMetric* error = ErrorOf(metric, all);
  const bool is_below = error != nullptr && std::abs(metric.value) < error->value;
  line.AddRight(
      is_below ? "<" + ValueOf(*error, kValueColumns - 1) : ValueOf(metric, kValueColumns),
      kValueColumns);
  const double whole = WholeOf(metric, all);
  if (widths.bar > 0 && whole > 0) {
    const double share = metric.value / whole;
    line.PadTo(BarAt(widths)).Add(MeterText(share, widths.bar, look.charset), ToneOf(share));
  }
  if (widths.spark > 0) {
    line.PadTo(SparkAt(widths))
        .Add(SparkOf(metric, whole, widths.spark, look.charset), Tone::kAccent);
  }
  return line.Take();
}

}  // namespace

std::vector<std::string> TopSectionLines(const std::vector<TopSection>& sections,
                                         const TopData& data, const TopLook& look) {
  int name_longest = 0;
  for (const TopSection& section : sections) {
    const std::set<std::string> hidden = HiddenLabels(section.metrics);
    for (const TopMetric* metric : section.metrics) {
      const int labels = ColumnsOf(ShortLabels(*metric, hidden));
      const int name = ColumnsOf(metric->name) + (labels > 0 ? labels + 1 : 0);
      name_longest = std::max(name_longest, name);
    }
  }
  const Widths widths = WidthsFor(look.columns, name_longest);
  const Newest newest = NewestOf(data.metrics);
  std::vector<std::string> lines;
  for (const TopSection& section : sections) {
    if (section.metrics.empty()) continue;
    // A blank line, and what sparklines cover beside the first title.
    const bool is_first = lines.empty();
    lines.emplace_back();
    TopLine title(look);
    title.Add(section.title, Tone::kBold);
    if (is_first && widths.spark > 0 && title.column() < SparkAt(widths)) {
      title.PadTo(SparkAt(widths)).Add(SpanText(data.history_seconds), Tone::kDim);
    }
    lines.push_back(title.Take());
    const std::set<std::string> hidden = HiddenLabels(section.metrics);
    for (const TopMetric* metric : section.metrics) {
      lines.push_back(LineOf(*metric, hidden, widths, data.metrics, newest, look));
    }
  }
  return lines;
}

}  // namespace stepwell::cli
