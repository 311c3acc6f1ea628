#include "client/agent/sensors/sensor_selection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

std::set<std::string> KnownGroups() {
  std::set<std::string> groups;
  for (const SystemMetric* metric : AllSystemMetrics()) groups.insert(metric->metric_group);
  return groups;
}

std::set<std::string> Split(const std::string& text) {
  std::set<std::string> names;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    names.emplace(absl::StripAsciiWhitespace(part));
  }
  return names;
}

absl::Status CheckMetrics(absl::string_view field, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    if (FindSystemMetric(name) != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, " ", name, ": must be a system metric; docs/metrics.md lists them"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SensorSelection> SensorSelection::Parse(const Texts& texts) {
  SensorSelection selection;
  selection.groups_ = Split(texts.groups);
  const std::set<std::string> known = KnownGroups();
  for (const std::string& group : selection.groups_) {
    if (known.count(group) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("groups ", group, ": must be of ", absl::StrJoin(known, ", ")));
  }
  selection.without_ = Split(texts.without);
  STEPWELL_RETURN_IF_ERROR(CheckMetrics("without", selection.without_));
  selection.with_ = Split(texts.with);
  STEPWELL_RETURN_IF_ERROR(CheckMetrics("with", selection.with_));
  if (!texts.interval.empty()) {
    absl::Duration interval;
    if (!absl::ParseDuration(texts.interval, &interval) || interval < kIntervalMin ||
        interval > kIntervalMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "interval ", texts.interval, ": must be a duration like 250ms, from 10ms to 1h"));
    }
    selection.interval_ = interval;
  }
  return selection;
}

bool SensorSelection::Wants(const SystemMetric& metric) const {
  if (!WantsGroup(metric.metric_group)) return false;
  if (!without_.empty() && without_.count(metric.name) > 0) return false;
  return metric.asked == Asked::kAlways || with_.count(metric.name) > 0;
}

void SensorSelection::SetInterval(absl::Duration interval) {
  interval_ = std::clamp(interval, kIntervalMin, kIntervalMax);
}

}  // namespace stepwell::agent
