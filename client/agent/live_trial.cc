#include "client/agent/live_trial.h"

#include <algorithm>

#include "client/agent/sensors/system_metrics.h"

namespace stepwell::agent {
namespace {

template <typename Counts>
const WriterIdentity* Newest(const std::vector<LiveTrial::Rank>& ranks, const Counts& counts) {
  const WriterIdentity* newest = nullptr;
  for (const LiveTrial::Rank& rank : ranks) {
    if (!counts(*rank.who)) continue;
    if (newest == nullptr || rank.who->opened_time_us > newest->opened_time_us) newest = rank.who;
  }
  return newest;
}

}  // namespace

const WriterIdentity* LiveTrial::NewestThatSamples() const {
  return Newest(ranks_, [](const WriterIdentity& who) { return who.sampling.on; });
}

const WriterIdentity* LiveTrial::NewestOfAttempt() const {
  return Newest(ranks_, [](const WriterIdentity& who) { return !who.attempt_key.empty(); });
}

std::int32_t LiveTrial::LowestRanksBatch(const std::string& attempt_key) const {
  const Rank* lowest = nullptr;
  for (const Rank& rank : ranks_) {
    if (!attempt_key.empty() && rank.who->attempt_key != attempt_key) continue;
    if (lowest == nullptr || rank.who->rank < lowest->who->rank) lowest = &rank;
  }
  return lowest == nullptr ? -1 : lowest->last_batch;
}

std::int64_t LiveTrial::SinceUs() const {
  std::int64_t since_us = 0;
  for (const Rank& rank : ranks_) {
    if (since_us == 0 || rank.who->opened_time_us < since_us) since_us = rank.who->opened_time_us;
  }
  return since_us;
}

std::vector<pid_t> LiveTrial::pids() const {
  std::vector<pid_t> pids;
  for (const Rank& rank : ranks_) {
    if (rank.pid > 0) pids.push_back(rank.pid);
  }
  return pids;
}

SensorSelection Choose(const SamplingWish& wish, const SensorSelection& otherwise) {
  SensorSelection chosen = otherwise;
  if (wish.interval_us > 0) chosen.SetInterval(absl::Microseconds(wish.interval_us));
  if (!wish.groups.empty()) chosen.SetGroups(wish.groups);
  if (!wish.without.empty()) chosen.SetWithout(wish.without);
  if (!wish.with.empty()) chosen.SetWith(wish.with);
  return chosen;
}

std::vector<std::string> UnknownWords(const SamplingWish& wish) {
  std::vector<std::string> unknown;
  const auto& all = AllSystemMetrics();
  for (const std::string& group : wish.groups) {
    const bool is_known = std::any_of(all.begin(), all.end(), [&](const SystemMetric* metric) {
      return group == metric->metric_group;
    });
    if (!is_known) unknown.push_back(group);
  }
  for (const auto* names : {&wish.without, &wish.with}) {
    std::copy_if(names->begin(), names->end(), std::back_inserter(unknown),
                 [](const std::string& name) { return FindSystemMetric(name) == nullptr; });
  }
  return unknown;
}

}  // namespace stepwell::agent
