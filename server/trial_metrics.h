// TrialMetrics: the newest values of the machines that running trials use, as Prometheus reads them: one
// gauge for each metric of docs/metrics.md, in base units, with the labels project, trial, agent and the
// series' own (a GPU's is `gpu_uuid`); and stepwell_trial_info, which says what else runs where. A core.
//
//   TrialMetrics metrics(families);
//   metrics.Add(trial, latest_values);    // of each running trial
//   metrics.Finish();
//
// What is old, beyond the bound, or called as something else is, is left out: Prometheus ends a series that a
// scrape does not have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "server/metric_families.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {

// The metric groups of machines; a series of another is left out.
inline constexpr std::array<std::string_view, 6> kMachineGroups = {"agent", "cpu",    "disk",
                                                                   "gpu",   "memory", "network"};

class TrialMetrics {
 public:
  struct Options {
    std::size_t values_max = 20'000;
    // Behind the master's clock: beyond it Prometheus would not show it either.
    absl::Duration age_max = absl::Minutes(5);
  };

  // `families` outlives this.
  explicit TrialMetrics(MetricFamilies& families) : TrialMetrics(families, Options()) {}
  TrialMetrics(MetricFamilies& families, Options options)
      : families_(families), options_(options) {}

  // Once for each trial, whatever the groups.
  void Add(const v1::Trial& trial, const v1::LatestValuesResponse& latest);
  // Not all is told: there was too much, or it was not answered.
  void NoteIncomplete() { complete_ = false; }
  // Once, last.
  void Finish();

 private:
  // What an agent was seen with.
  struct Machine {
    std::set<std::string> gpus;
    std::set<std::string> containers;
    // Labels `pod` and `slurm_job`, as the newest value tells them.
    MetricLabels placement;
    std::int64_t placed_us = 0;
  };
  // Project, trial and agent.
  using Machines = std::map<MetricLabels, Machine>;

  using Value = v1::LatestValuesResponse::Value;

  void AddValue(const MetricLabels& trial, const Value& value);
  // Whether the name is that metric's: not another's, which came first.
  bool IsOf(const MetricName& name, const std::string& group, const std::string& metric);
  static void NotePlacement(const Value& value, Machine& machine);
  void AddInfo(const MetricLabels& labels, const Machine& machine, const std::string& gpu,
               const std::string& container);

  MetricFamilies& families_;
  const Options options_;
  Machines machines_;
  // Group and name of the metric behind each of Prometheus' names.
  std::map<std::string, std::pair<std::string, std::string>> metrics_;
  std::size_t value_count_ = 0;
  bool complete_ = true;
};

// How people name it: its own name, or "id:7".
std::string NameOf(const v1::Trial& trial);

}  // namespace stepwell
