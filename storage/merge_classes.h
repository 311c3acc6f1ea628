// MergeClasses: the keep classes of one stretch of merge work. Its series are merged in slices, and the
// rows of ticks that they share are written once per class that has columns on them: this remembers
// which series are of which class, and what is written. A core. Confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "base/ids.h"
#include "storage/keep_plan.h"

namespace stepwell {

class MergeClasses {
 public:
  MergeClasses() = default;
  // `groups`: the metric group of each of `series`, which ascend.
  MergeClasses(KeepPlan plan, absl::Span<const SeriesNo> series,
               absl::Span<const std::string* const> groups);

  // REQUIRES: one of the series.
  std::int16_t ClassOf(SeriesNo series_no) const { return class_of_.at(series_no); }
  // Ascending.
  const std::vector<std::int32_t>& SeriesOf(std::int16_t keep_class) const {
    return series_of_.at(keep_class);
  }
  // Those that have any, with their series.
  const std::map<std::int16_t, std::vector<std::int32_t>>& by_class() const { return series_of_; }
  const KeepPlan& plan() const { return plan_; }
  // True the first time for a class and merged stretch: its ticks are to be written.
  bool NoteTicks(std::int16_t keep_class, std::size_t stretch) {
    return written_.emplace(keep_class, stretch).second;
  }

 private:
  KeepPlan plan_;
  absl::flat_hash_map<SeriesNo, std::int16_t> class_of_;
  std::map<std::int16_t, std::vector<std::int32_t>> series_of_;
  std::set<std::pair<std::int16_t, std::size_t>> written_;
};

}  // namespace stepwell
