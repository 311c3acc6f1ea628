#include "storage/keep_plan.h"

#include <set>

namespace stepwell {

KeepPlan::KeepPlan(absl::Span<const PlacedCaps> placed, std::int64_t project_id,
                   std::int64_t trial_id, const KeepClasses& classes) {
  const auto class_of = [&](const std::string& group) {
    return classes.Find(AgesOf(ResolveCaps(placed, project_id, trial_id, group))).value_or(0);
  };
  usual_ = class_of("");
  std::set<std::int16_t> used = {usual_};
  for (const PlacedCaps& each : placed) {
    const std::string& group = each.place.metric_group;
    if (group.empty() || of_group_.contains(group)) continue;
    used.insert(of_group_[group] = class_of(group));
  }
  // Class 0 is there, even where somebody took it out of the table.
  if (used.contains(0)) used_.push_back(KeepClass{});
  for (const KeepClass& each : classes.all()) {
    if (each.keep_class != 0 && used.contains(each.keep_class)) used_.push_back(each);
  }
}

std::int16_t KeepPlan::ClassOf(std::string_view metric_group) const {
  const auto found = of_group_.find(metric_group);
  return found == of_group_.end() ? usual_ : found->second;
}

}  // namespace stepwell
