#include "client/cli/top_metrics.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/top_sections.h"

namespace stepwell::cli {
namespace {

// More are shown on request only.
constexpr std::size_t kRanksMax = 4;
constexpr std::size_t kFullDevicesMax = 2;

// What most people look for, in the order of the frame.
constexpr std::string_view kUsual[] = {
    "cpu_util_simple",
    "cpu_util_container",
    "memory_used",
    "memory_container_used",
    "disk_throughput_read",
    "disk_throughput_write",
    "disk_util",
    "net_throughput_recv",
    "net_throughput_sent",
    "gpu_util",
    "gpu_used_memory",
    "gpu_power",
    "gpu_temperature",
    "cpu_util_process",
    "memory_process_resident",
};

std::ptrdiff_t PlaceOf(const std::string& name) {
  return std::find(std::begin(kUsual), std::end(kUsual), name) - std::begin(kUsual);
}
bool IsUsual(const std::string& name) { return PlaceOf(name) < std::ssize(kUsual); }

// -1 = of none.
int RankOf(const TopMetric& metric) {
  int rank = -1;
  return absl::SimpleAtoi(metric.Label("rank"), &rank) ? rank : -1;
}

// Of which part of the frame.
enum class Part { kTraining, kMachine, kGpu, kProcess };
Part PartOf(const TopMetric& metric) {
  if (!metric.is_system()) return Part::kTraining;
  if (metric.labels.contains("device")) return Part::kGpu;
  return metric.labels.contains("rank") ? Part::kProcess : Part::kMachine;
}

// As the frame orders them: devices and processes apart, of each first what most people look for.
auto OrderOf(const TopMetric& metric) {
  return std::tuple(metric.Label("device"), metric.Label("trial"), RankOf(metric),
                    PlaceOf(metric.name), metric.group, metric.name, metric.labels);
}

using Metrics = std::vector<const TopMetric*>;

// What is shown of a part of the frame, and of how many ranks there are.
struct Chosen {
  Metrics metrics;
  std::size_t rank_count = 0;
  bool is_cut = false;
};

// Without `all_metrics`: of many ranks the lowest, of many GPUs what matters most.
Chosen Choose(const std::vector<TopMetric>& metrics, const std::string& agent, Part part,
              bool all_metrics) {
  Chosen chosen;
  std::set<int> ranks;
  std::set<std::string> devices;
  for (const TopMetric& metric : metrics) {
    if (PartOf(metric) != part) continue;
    if (part != Part::kTraining && metric.Label("agent") != agent) continue;
    if (!all_metrics && part != Part::kTraining && !IsUsual(metric.name)) continue;
    ranks.insert(RankOf(metric));
    devices.insert(metric.Label("device"));
    chosen.metrics.push_back(&metric);
  }
  std::sort(chosen.metrics.begin(), chosen.metrics.end(),
            [](const TopMetric* a, const TopMetric* b) { return OrderOf(*a) < OrderOf(*b); });
  chosen.rank_count = ranks.size();
  if (all_metrics) return chosen;
  if (ranks.size() > kRanksMax) {
    const int first_hidden = *std::next(ranks.begin(), kRanksMax);
    std::erase_if(chosen.metrics, [&](const TopMetric* m) { return RankOf(*m) >= first_hidden; });
    chosen.is_cut = true;
  }
  if (devices.size() > kFullDevicesMax) {
    std::erase_if(chosen.metrics, [](const TopMetric* metric) {
      return metric->name != "gpu_util" && metric->name != "gpu_used_memory";
    });
  }
  return chosen;
}

}  // namespace

std::vector<std::string> TopMetricLines(const TopData& data, const TopLook& look) {
  const std::vector<TopMetric>& metrics = data.metrics;
  std::vector<TopSection> sections;
  const auto add = [&](const std::string& title, const std::string& agent, Part part) {
    Chosen chosen = Choose(metrics, agent, part, look.all_metrics);
    const std::string cut =
        chosen.is_cut ? absl::StrCat(", ", kRanksMax, " of ", chosen.rank_count, " ranks") : "";
    sections.push_back({title + cut, std::move(chosen.metrics)});
  };
  // Who asks for a machine looks for the machine.
  if (data.machine.empty()) add("Training", "", Part::kTraining);
  std::set<std::string> agents;
  for (const TopMetric& metric : metrics) {
    if (metric.is_system()) agents.insert(metric.Label("agent"));
  }
  for (const std::string& agent : agents) {
    const std::string on = agent.empty() ? "" : absl::StrCat(" on ", agent);
    add(agent.empty() ? "Machine" : absl::StrCat("Machine ", agent), agent, Part::kMachine);
    add("GPUs" + on, agent, Part::kGpu);
    add("Processes" + on, agent, Part::kProcess);
  }
  if (!data.machine.empty()) add("Training", "", Part::kTraining);
  return TopSectionLines(sections, data, look);
}

}  // namespace stepwell::cli
