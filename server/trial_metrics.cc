#include "server/trial_metrics.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr char kPrefix[] = "stepwell_trial_";
// Its own: a series that is called so would be taken for them.
constexpr char kInfo[] = "stepwell_trial_info";
constexpr char kComplete[] = "stepwell_trial_metrics_complete";

struct Unit {
  std::string suffix;
  double factor = 1;
};

// Prometheus' base units; the master's are, but for percent.
Unit UnitOf(const std::string& unit) {
  if (unit.empty() || unit == "1") return {"", 1};
  if (unit == "percent") return {"_ratio", 0.01};
  if (unit == "1/s") return {"_per_second", 1};
  if (absl::EndsWith(unit, "/s")) {
    return {absl::StrCat("_", unit.substr(0, unit.size() - 2), "_per_second"), 1};
  }
  return {absl::StrCat("_", unit), 1};
}

// [a-zA-Z0-9_]: what else a name has becomes a line.
std::string Plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

// Those of the machine's series are few; another's, of the same name as ours, steps aside.
std::string LabelOf(const std::string& group, const std::string& label) {
  if (group == "gpu" && label == "device") return "gpu_uuid";
  const std::string plain = Plain(label);
  const bool is_ours = plain == "project" || plain == "trial" || plain == "gpu_uuid";
  const bool is_bad =
      plain.empty() || plain[0] == '_' || std::isdigit(static_cast<unsigned char>(plain[0])) != 0;
  return is_ours || is_bad ? absl::StrCat("label_", plain) : plain;
}

std::optional<MetricName> MetricOf(const v1::Series& series, const Unit& unit) {
  const std::string& group = series.key().metric_group();
  if (std::find(kMachineGroups.begin(), kMachineGroups.end(), group) == kMachineGroups.end()) {
    return std::nullopt;
  }
  MetricName name;
  name.name = absl::StrCat(kPrefix, group == "agent" ? "agent_" : "", Plain(series.key().name()),
                           Plain(unit.suffix));
  if (series.kind() == v1::SERIES_KIND_COUNTER) {
    name.name += "_total";
    name.type = MetricType::kCounter;
  }
  if (name.name == kInfo || name.name == kComplete) return std::nullopt;
  name.help =
      absl::StrCat(group, "/", Plain(series.key().name()), " of docs/metrics.md, newest value.");
  return name;
}

}  // namespace

std::string NameOf(const v1::Trial& trial) {
  return trial.external_id().empty() ? absl::StrCat("id:", trial.trial_id()) : trial.external_id();
}

void TrialMetrics::Add(const v1::Trial& trial, const v1::LatestValuesResponse& latest) {
  const MetricLabels labels{{"project", trial.project()}, {"trial", NameOf(trial)}};
  const std::int64_t oldest_us =
      latest.completeness().answered_time_us() - absl::ToInt64Microseconds(options_.age_max);
  for (const Value& value : latest.values()) {
    if (value.time_us() >= oldest_us) AddValue(labels, value);
  }
  // One that measures nothing (yet) is there, too.
  const auto known = machines_.lower_bound(labels);
  const bool has_machine = known != machines_.end() && known->first.size() > labels.size() &&
                           std::equal(labels.begin(), labels.end(), known->first.begin());
  if (!has_machine) machines_[labels];
}

void TrialMetrics::AddValue(const MetricLabels& trial, const Value& value) {
  const v1::Series& series = value.series();
  const Unit unit = UnitOf(series.unit());
  const std::optional<MetricName> name = MetricOf(series, unit);
  if (!name) return;
  const std::string& group = series.key().metric_group();
  if (value_count_ >= options_.values_max || !IsOf(*name, group, series.key().name())) {
    return NoteIncomplete();
  }
  // By name: protobuf's maps have no order.
  const std::map<std::string, std::string> own(series.key().labels().begin(),
                                               series.key().labels().end());
  const auto text_of = [&](const char* label) {
    const auto found = own.find(label);
    return found == own.end() ? std::string() : found->second;
  };
  MetricLabels labels = trial;
  if (own.count("agent") != 0) labels.emplace_back("agent", text_of("agent"));
  Machine& machine = machines_[labels];
  if (group == "agent" && series.key().name() == "placement") return NotePlacement(value, machine);
  if (group == "gpu") machine.gpus.insert(text_of(own.count("parent") ? "parent" : "device"));
  if (own.count("container") != 0) machine.containers.insert(text_of("container"));
  for (const auto& [label, text] : own) {
    // Two that become one name: a line that has a name twice would spoil the whole answer.
    const std::string name_here = LabelOf(group, label);
    const auto is_it = [&](const auto& there) { return there.first == name_here; };
    if (label == "agent" || std::any_of(labels.begin(), labels.end(), is_it)) continue;
    labels.emplace_back(name_here, text);
  }
  if (!families_.Add(*name, value.value() * unit.factor, labels)) return NoteIncomplete();
  ++value_count_;
}

bool TrialMetrics::IsOf(const MetricName& name, const std::string& group,
                        const std::string& metric) {
  const std::pair<std::string, std::string> it(group, metric);
  return metrics_.try_emplace(name.name, it).first->second == it;
}

// It is no measure, and says of the machine what stepwell_trial_info does.
void TrialMetrics::NotePlacement(const Value& value, Machine& machine) {
  if (value.time_us() < machine.placed_us) return;
  machine.placed_us = value.time_us();
  machine.placement.clear();
  const auto& labels = value.series().key().labels();
  for (const char* name : {"pod", "slurm_job"}) {
    const auto found = labels.find(name);
    if (found != labels.end()) machine.placement.emplace_back(name, found->second);
  }
}

void TrialMetrics::AddInfo(const MetricLabels& labels, const Machine& machine,
                           const std::string& gpu, const std::string& container) {
  MetricLabels all = labels;
  if (!gpu.empty()) all.emplace_back("gpu_uuid", gpu);
  if (!container.empty()) all.emplace_back("container_id", container);
  all.insert(all.end(), machine.placement.begin(), machine.placement.end());
  families_.Add({kInfo, "1 for each GPU and container that a running trial is seen with."}, 1, all);
}

void TrialMetrics::Finish() {
  for (const auto& [labels, machine] : machines_) {
    if (machine.gpus.empty() && machine.containers.empty()) AddInfo(labels, machine, "", "");
    for (const std::string& gpu : machine.gpus) {
      AddInfo(labels, machine, gpu,
              machine.containers.size() == 1 ? *machine.containers.begin() : "");
    }
    if (machine.containers.size() == 1 && !machine.gpus.empty()) continue;
    for (const std::string& container : machine.containers) AddInfo(labels, machine, "", container);
  }
  families_.Add(
      {kComplete, "0 where running trials or values of theirs were left out of this answer."},
      complete_ ? 1 : 0);
}

}  // namespace stepwell
