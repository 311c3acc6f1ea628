#include "storage/merge_classes.h"

#include "base/check.h"

namespace stepwell {

MergeClasses::MergeClasses(KeepPlan plan, absl::Span<const SeriesNo> series,
                           absl::Span<const std::string* const> groups)
    : plan_(std::move(plan)) {
  STEPWELL_CHECK(series.size() == groups.size());
  class_of_.reserve(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::int16_t keep_class = plan_.ClassOf(*groups[i]);
    class_of_[series[i]] = keep_class;
    series_of_[keep_class].push_back(Value(series[i]));
  }
}

}  // namespace stepwell
