#include "client/cli/top_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr int kIndent = 2;
constexpr int kValueColumns = 11;  // "1,023 MiB/s"
constexpr int kNameColumnsMin = 16;
constexpr int kNameColumnsMax = 40;
constexpr int kBarColumnsMin = 6;
constexpr int kBarColumnsMax = 20;
constexpr int kSparkColumnsMin = 10;

// What most people look for, in the order of the frame, and the metric that is its whole.
struct Usual {
  const char* name;
  const char* whole;
};
constexpr Usual kUsual[] = {
    {"cpu_util_simple", ""},
    {"cpu_util_container", ""},
    {"memory_used", "memory_total"},
    {"memory_container_used", "memory_container_limit"},
    {"disk_throughput_read", ""},
    {"disk_throughput_write", ""},
    {"disk_util", ""},
    {"net_throughput_recv", ""},
    {"net_throughput_sent", ""},
    {"gpu_util", ""},
    {"gpu_used_memory", "gpu_total_memory"},
    {"gpu_power", "gpu_power_limit"},
    {"gpu_temperature", ""},
    {"cpu_util_process", ""},
    {"memory_process_resident", "memory_total"},
};

int PlaceOf(const std::string& name) {
  const auto* found = std::find_if(std::begin(kUsual), std::end(kUsual),
                                   [&](const Usual& usual) { return name == usual.name; });
  return static_cast<int>(found - std::begin(kUsual));
}
bool IsUsual(const std::string& name) {
  return PlaceOf(name) < static_cast<int>(std::size(kUsual));
}

bool IsSystemGroup(const std::string& group) {
  static const std::set<std::string> groups = {"gpu", "cpu", "memory", "disk", "network", "agent"};
  return groups.contains(group);
}

std::string LabelOf(const TopMetric& metric, const std::string& name) {
  const auto found = metric.labels.find(name);
  return found == metric.labels.end() ? std::string() : found->second;
}

// Of which part of the frame.
enum class Part { kTraining, kMachine, kGpu, kProcess };
Part PartOf(const TopMetric& metric) {
  if (!IsSystemGroup(metric.group)) return Part::kTraining;
  if (metric.labels.contains("device")) return Part::kGpu;
  return metric.labels.contains("rank") ? Part::kProcess : Part::kMachine;
}

// As the frame orders them: devices and processes apart, of each first what most people look for.
auto OrderOf(const TopMetric& metric) {
  return std::tuple(LabelOf(metric, "device"), LabelOf(metric, "trial"), LabelOf(metric, "rank"),
                    PlaceOf(metric.name), metric.group, metric.name, metric.labels);
}

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

std::string ValueOf(const TopMetric& metric) {
  if (std::isnan(metric.value)) return "NaN";
  if (std::isinf(metric.value)) return metric.value > 0 ? "Infinity" : "-Infinity";
  return ValueText(metric.value, metric.unit);
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
    if (IsSystemGroup(metric.group)) low = std::min(low, 0.0);
  }
  if (!(high > low)) high = low + 1;
  return SparkText(metric.history, low, high, columns, charset);
}

// Percent is of 100; others of the metric that is their whole; 0 = nothing to compare with.
double WholeOf(const TopMetric& metric, const std::vector<TopMetric>& all) {
  // 100 is one processor there.
  if (metric.unit == "percent") return metric.name == "cpu_util_process" ? 0 : 100;
  const int place = PlaceOf(metric.name);
  if (place == static_cast<int>(std::size(kUsual))) return 0;
  const std::string_view whole = kUsual[place].whole;
  for (const TopMetric& other : all) {
    if (other.name == whole && LabelOf(other, "agent") == LabelOf(metric, "agent") &&
        (PartOf(metric) != Part::kGpu || LabelOf(other, "device") == LabelOf(metric, "device"))) {
      return other.value;
    }
  }
  return 0;
}

struct Section {
  std::string title;
  Metrics shown;
  std::set<std::string> hidden;
};

// All sections, in the same columns.
class Sections {
 public:
  explicit Sections(const std::vector<TopMetric>& all) : all_(all) {}

  void Add(const std::string& title, Metrics shown) {
    if (shown.empty()) return;
    std::set<std::string> hidden = HiddenLabels(shown);
    for (const TopMetric* metric : shown) {
      const int labels = ColumnsOf(ShortLabels(*metric, hidden));
      const int name = ColumnsOf(metric->name) + (labels > 0 ? labels + 1 : 0);
      name_longest_ = std::max(name_longest_, name);
    }
    sections_.push_back({title, std::move(shown), std::move(hidden)});
  }

  std::vector<std::string> Lines(const TopLook& look) const {
    const Widths widths = WidthsFor(look.columns, name_longest_);
    std::vector<std::string> lines;
    for (const Section& section : sections_) {
      // A blank line, and what sparklines cover beside the first title.
      const bool is_first = lines.empty();
      lines.emplace_back();
      TopLine title(look);
      title.Add(section.title, Tone::kBold);
      if (is_first && widths.spark > 0 && title.column() < SparkAt(widths)) {
        title.PadTo(SparkAt(widths)).Add("last 5 min", Tone::kDim);
      }
      lines.push_back(title.Take());
      for (const TopMetric* metric : section.shown) {
        lines.push_back(LineOf(*metric, section.hidden, widths, look));
      }
    }
    return lines;
  }

 private:
  static int BarAt(const Widths& widths) { return kIndent + widths.name + 1 + kValueColumns + 2; }
  static int SparkAt(const Widths& widths) { return BarAt(widths) + widths.bar + 2; }

  // What tells two lines apart is more than what they have in common: where both do not fit, the
  // name gives way.
  static void AddName(const TopMetric& metric, const std::set<std::string>& hidden, int columns,
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

  std::string LineOf(const TopMetric& metric, const std::set<std::string>& hidden,
                     const Widths& widths, const TopLook& look) const {
    TopLine line(look);
    line.PadTo(kIndent);
    AddName(metric, hidden, widths.name, line);
    line.PadTo(kIndent + widths.name + 1).AddRight(ValueOf(metric), kValueColumns);
    const double whole = WholeOf(metric, all_);
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

  const std::vector<TopMetric>& all_;
  std::vector<Section> sections_;
  int name_longest_ = 0;
};

Metrics Choose(const std::vector<TopMetric>& metrics, const std::string& agent, Part part,
               bool all_metrics) {
  Metrics chosen;
  for (const TopMetric& metric : metrics) {
    const bool is_wanted = all_metrics || part == Part::kTraining || IsUsual(metric.name);
    if (is_wanted && PartOf(metric) == part &&
        (part == Part::kTraining || LabelOf(metric, "agent") == agent)) {
      chosen.push_back(&metric);
    }
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const TopMetric* a, const TopMetric* b) { return OrderOf(*a) < OrderOf(*b); });
  return chosen;
}

}  // namespace

std::vector<std::string> TopMetricLines(const std::vector<TopMetric>& metrics,
                                        const TopLook& look) {
  Sections sections(metrics);
  const auto add = [&](const std::string& title, const std::string& agent, Part part) {
    sections.Add(title, Choose(metrics, agent, part, look.all_metrics));
  };
  add("Training", "", Part::kTraining);
  std::set<std::string> agents;
  for (const TopMetric& metric : metrics) {
    if (IsSystemGroup(metric.group)) agents.insert(LabelOf(metric, "agent"));
  }
  for (const std::string& agent : agents) {
    const std::string on = agent.empty() ? "" : absl::StrCat(" on ", agent);
    add(agent.empty() ? "Machine" : absl::StrCat("Machine ", agent), agent, Part::kMachine);
    add("GPUs" + on, agent, Part::kGpu);
    add("Processes" + on, agent, Part::kProcess);
  }
  return sections.Lines(look);
}

}  // namespace stepwell::cli
