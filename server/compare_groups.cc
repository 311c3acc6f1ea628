#include "server/compare_groups.h"

#include <map>
#include <tuple>
#include <utility>

namespace stepwell {
namespace {

auto OrderOf(const SeriesKey& key) { return std::tie(key.metric_group, key.name, key.labels); }

struct KeyBefore {
  bool operator()(const SeriesKey& a, const SeriesKey& b) const { return OrderOf(a) < OrderOf(b); }
};

}  // namespace

std::vector<ComparedGroup> GroupTrials(const std::vector<std::vector<Series>>& of_trials,
                                       const std::set<std::string>& kept) {
  std::map<SeriesKey, ComparedGroup, KeyBefore> by_key;
  for (std::size_t trial = 0; trial < of_trials.size(); ++trial) {
    for (const Series& series : of_trials[trial]) {
      const SeriesDefinition& definition = series.definition;
      const auto [place, is_new] = by_key.try_emplace(KeyKeeping(definition.key, kept));
      ComparedGroup& group = place->second;
      if (is_new) {
        group.unit = definition.unit;
        group.kind = definition.kind;
        group.sides.resize(of_trials.size());
      }
      group.units_differ |= group.unit != definition.unit;
      if (group.kind != definition.kind) group.kind = SeriesKind{};
      group.sides[trial].push_back(series.series_no);
    }
  }
  std::vector<ComparedGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, group] : by_key) {
    group.key = key;
    if (group.units_differ) group.unit.clear();
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<SeriesGroup> SideOf(const std::vector<ComparedGroup>& groups, std::size_t trial) {
  std::vector<SeriesGroup> side;
  side.reserve(groups.size());
  for (const ComparedGroup& group : groups) {
    side.push_back({.key = group.key,
                    .unit = group.unit,
                    .kind = group.kind,
                    .series_nos = group.sides[trial]});
  }
  return side;
}

}  // namespace stepwell
