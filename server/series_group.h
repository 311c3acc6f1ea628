// SeriesGroup: series that are answered as one. A core; pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "storage/model.h"

namespace stepwell {

// Series that are answered as one.
struct SeriesGroup {
  SeriesKey key;
  std::string unit;
  SeriesKind kind{};  // none where its series differ
  std::vector<SeriesNo> series_nos;
};

// `key` with no other labels than `kept`.
SeriesKey KeyKeeping(SeriesKey key, const std::set<std::string>& kept);

// Each series by itself.
std::vector<SeriesGroup> EachByItself(const std::vector<Series>& series);
// Those that agree in group, name, unit and the labels `kept`; in the order of their first series.
std::vector<SeriesGroup> GroupAcross(const std::vector<Series>& series,
                                     const std::set<std::string>& kept);

// Of their keys, sorted, each once.
std::vector<std::string> MetricGroupsOf(const std::vector<SeriesGroup>& groups);
// How many of `series` each of `metric_groups` has. REQUIRES: they are sorted, each once.
std::vector<std::int32_t> CountByGroup(const std::vector<Series>& series,
                                       const std::vector<std::string>& metric_groups);

}  // namespace stepwell
