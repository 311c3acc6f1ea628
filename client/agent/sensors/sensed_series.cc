#include "client/agent/sensors/sensed_series.h"

#include <utility>

namespace stepwell::agent {
namespace {

std::string KeyOf(const SensedSeries& series) {
  std::string key = series.metric_group + '\0' + series.name;
  for (const auto& [label, value] : series.labels) key += '\0' + label + '\0' + value;
  return key;
}

}  // namespace

const SensedSeries* SeriesPool::Keep(SensedSeries series) {
  std::string key = KeyOf(series);
  absl::MutexLock lock(&mu_);
  const auto found = series_by_key_.find(key);
  if (found != series_by_key_.end()) return &found->second;
  if (series_by_key_.size() == kSeriesCountMax) return nullptr;
  return &series_by_key_.emplace(std::move(key), std::move(series)).first->second;
}

}  // namespace stepwell::agent
