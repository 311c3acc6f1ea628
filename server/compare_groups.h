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
  // What one trial has of it.
  struct Side {
    std::vector<SeriesNo> series_nos;  // empty = none
    std::string unit;                  // empty where they differ
    bool units_differ = false;         // among themselves
  };
  SeriesKey key;
  std::string unit;   // empty where its series differ, of whatever trial
  SeriesKind kind{};  // none where its series differ
  // In the order of the trials, as many.
  std::vector<Side> sides;
};

// By metric group, name, labels.
std::vector<ComparedGroup> GroupTrials(const std::vector<std::vector<Series>>& of_trials,
                                       const std::set<std::string>& kept);

// Of each side: whether it and the first have each one unit, and the same. Of others no difference to the
// first says anything.
std::vector<bool> HaveUnitOfFirst(const ComparedGroup& group);

// The series of one trial, a group for each of `groups` at the same place.
std::vector<SeriesGroup> SideOf(const std::vector<ComparedGroup>& groups, std::size_t trial);

}  // namespace stepwell
