#include "server/series_group.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

// Equal for series of one group; lengths keep parts apart.
std::string IdentityOf(const SeriesKey& key, const std::string& unit) {
  std::string identity;
  for (const std::string& part : {key.metric_group, key.name, unit}) {
    absl::StrAppend(&identity, part.size(), ":", part);
  }
  for (const auto& [name, value] : key.labels) {
    absl::StrAppend(&identity, name.size(), ":", name, value.size(), ":", value);
  }
  return identity;
}

SeriesGroup GroupOf(const Series& series, SeriesKey key) {
  return {.key = std::move(key),
          .unit = series.definition.unit,
          .kind = series.definition.kind,
          .series_nos = {series.series_no}};
}

}  // namespace

SeriesKey KeyKeeping(SeriesKey key, const std::set<std::string>& kept) {
  std::erase_if(key.labels, [&](const auto& label) { return !kept.contains(label.first); });
  return key;
}

std::vector<SeriesGroup> EachByItself(const std::vector<Series>& series) {
  std::vector<SeriesGroup> groups;
  groups.reserve(series.size());
  for (const Series& one : series) groups.push_back(GroupOf(one, one.definition.key));
  return groups;
}

std::vector<SeriesGroup> GroupAcross(const std::vector<Series>& series,
                                     const std::set<std::string>& kept) {
  std::vector<SeriesGroup> groups;
  std::map<std::string, std::size_t> place_of;
  for (const Series& one : series) {
    SeriesKey key = KeyKeeping(one.definition.key, kept);
    const auto [place, is_new] =
        place_of.emplace(IdentityOf(key, one.definition.unit), groups.size());
    if (is_new) {
      groups.push_back(GroupOf(one, std::move(key)));
      continue;
    }
    SeriesGroup& group = groups[place->second];
    if (group.kind != one.definition.kind) group.kind = SeriesKind{};
    group.series_nos.push_back(one.series_no);
  }
  return groups;
}

std::vector<std::string> MetricGroupsOf(const std::vector<SeriesGroup>& groups) {
  std::set<std::string> names;
  for (const SeriesGroup& group : groups) names.insert(group.key.metric_group);
  return {names.begin(), names.end()};
}

std::vector<std::int32_t> CountByGroup(const std::vector<Series>& series,
                                       const std::vector<std::string>& metric_groups) {
  std::vector<std::int32_t> counts(metric_groups.size());
  for (const Series& one : series) {
    const std::string& name = one.definition.key.metric_group;
    const auto found = std::lower_bound(metric_groups.begin(), metric_groups.end(), name);
    if (found == metric_groups.end() || *found != name) continue;
    ++counts[static_cast<std::size_t>(found - metric_groups.begin())];
  }
  return counts;
}

}  // namespace stepwell
