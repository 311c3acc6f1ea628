// SensorSelection: which system metrics a trial wants, and how often: groups, an off switch per
// metric, those on request, the interval, what another agent of the machine samples. Set by the agent's flags, changed by directives. A value;
// pure.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto selection, SensorSelection::Parse({.groups = "cpu,gpu"}));
//   if (selection.Wants(metrics::kGpuUtil)) ...
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/agent/sensors/system_metrics.h"

namespace stepwell::agent {

class SensorSelection {
 public:
  static constexpr absl::Duration kIntervalMin = absl::Milliseconds(10);
  static constexpr absl::Duration kIntervalMax = absl::Hours(1);

  // As people write them: names with commas between; an empty one is the default.
  struct Texts {
    std::string groups = {};    // default: all
    std::string without = {};   // metrics switched off
    std::string with = {};      // metrics on request
    std::string interval = {};  // "250ms"; default 1s
  };
  // kInvalidArgument says which text, what is wrong with it and what is allowed.
  static absl::StatusOr<SensorSelection> Parse(const Texts& texts);

  bool Wants(const SystemMetric& metric) const;
  bool WantsGroup(const std::string& metric_group) const {
    return groups_.empty() || groups_.count(metric_group) > 0;
  }
  absl::Duration interval() const { return interval_; }

  // Empty = all. Names of groups that no sensor has are kept: they want nothing.
  void SetGroups(const std::vector<std::string>& groups) {
    groups_ = {groups.begin(), groups.end()};
  }
  // Names that are no metric's change nothing.
  void SetWithout(const std::vector<std::string>& metrics) {
    without_ = {metrics.begin(), metrics.end()};
  }
  void SetWith(const std::vector<std::string>& metrics) {
    with_ = {metrics.begin(), metrics.end()};
  }
  // Another agent samples the machine: what is left is the machine's own and these GPUs, by their label
  // `device`. What that one cannot see is taken as before.
  void LeaveToAnother(const std::vector<std::string>& gpus) {
    left_gpus_.emplace(gpus.begin(), gpus.end());
  }
  bool leaves_machine() const { return left_gpus_.has_value(); }
  bool LeavesGpu(const std::string& device) const {
    return left_gpus_ && left_gpus_->count(device) > 0;
  }
  // Brought to what is allowed.
  void SetInterval(absl::Duration interval);

  friend bool operator==(const SensorSelection& a, const SensorSelection& b) = default;

 private:
  std::set<std::string> groups_;
  std::set<std::string> without_;
  std::set<std::string> with_;
  absl::Duration interval_ = absl::Seconds(1);
  std::optional<std::set<std::string>> left_gpus_;
};

}  // namespace stepwell::agent
