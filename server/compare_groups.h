// CompareGroups: the series of several trials that are compared with each other: those that agree in
// metric group, name and the labels that stay apart. A core; pure.
//
//   const std::vector<ComparedGroup> groups = GroupTrials({series_of_a, series_of_b}, {"rank"});
//   ReadBuckets(*view_of_b, SideOf(groups, 1), ...);
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "server/series_group.h"
#include "storage/model.h"

namespace stepwell {

struct ComparedGroup {
  SeriesKey key;
  std::string unit;           // empty where its series differ
  bool units_differ = false;  // no difference says anything
  SeriesKind kind{};          // none where its series differ
  // In the order of the trials, as many; empty = that trial has none.
  std::vector<std::vector<SeriesNo>> sides;
};

// By metric group, name, labels.
std::vector<ComparedGroup> GroupTrials(const std::vector<std::vector<Series>>& of_trials,
                                       const std::set<std::string>& kept);

// The series of one trial, a group for each of `groups` at the same place.
std::vector<SeriesGroup> SideOf(const std::vector<ComparedGroup>& groups, std::size_t trial);

}  // namespace stepwell
