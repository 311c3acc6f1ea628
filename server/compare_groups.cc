#include "server/compare_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace stepwell {
namespace {

auto OrderOf(const SeriesKey& key) { return std::tie(key.metric_group, key.name, key.labels); }

struct KeyBefore {
  bool operator()(const SeriesKey& a, const SeriesKey& b) const { return OrderOf(a) < OrderOf(b); }
};

void Add(const Series& series, ComparedGroup::Side& side) {
  const std::string& unit = series.definition.unit;
  if (side.series_nos.empty()) side.unit = unit;
  side.units_differ |= side.unit != unit;
  side.series_nos.push_back(series.series_no);
}

bool HasUnit(const ComparedGroup::Side& side, const std::string& unit) {
  return side.series_nos.empty() || (!side.units_differ && side.unit == unit);
}

// Once all series are in it; till then a group, and each side, has that of its first.
void SetUnits(ComparedGroup& group) {
  const bool is_one =
      std::all_of(group.sides.begin(), group.sides.end(),
                  [&](const ComparedGroup::Side& side) { return HasUnit(side, group.unit); });
  if (!is_one) group.unit.clear();
  for (ComparedGroup::Side& side : group.sides) {
    if (side.units_differ) side.unit.clear();
  }
}

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
      if (group.kind != definition.kind) group.kind = SeriesKind{};
      Add(series, group.sides[trial]);
    }
  }
  std::vector<ComparedGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, group] : by_key) {
    group.key = key;
    SetUnits(group);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<bool> HaveUnitOfFirst(const ComparedGroup& group) {
  const ComparedGroup::Side& first = group.sides.front();
  std::vector<bool> have;
  have.reserve(group.sides.size());
  for (const ComparedGroup::Side& side : group.sides) {
    have.push_back(!first.units_differ && !side.units_differ && side.unit == first.unit);
  }
  return have;
}

std::vector<SeriesGroup> SideOf(const std::vector<ComparedGroup>& groups, std::size_t trial) {
  std::vector<SeriesGroup> side;
  side.reserve(groups.size());
  for (const ComparedGroup& group : groups) {
    side.push_back({.key = group.key,
                    .unit = group.sides[trial].unit,
                    .kind = group.kind,
                    .series_nos = group.sides[trial].series_nos});
  }
  return side;
}

}  // namespace stepwell
