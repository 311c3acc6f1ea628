// KeepPlan: which class of ages the rows of one trial get, by metric group. Made from the caps that
// decide over the trial, as they are when its rows are merged. A core; a value.
//
//   const KeepPlan plan(placed, project_id, trial_id, classes);
//   place.keep_class = plan.ClassOf("gpu");
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "storage/keep_classes.h"

namespace stepwell {

class KeepPlan {
 public:
  // Class 0 for all groups.
  KeepPlan() : used_({KeepClass{}}) {}
  // Ages that have no class count as class 0, which is kept for ever: nothing may be lost because
  // somebody changed the tables by hand.
  KeepPlan(absl::Span<const PlacedCaps> placed, std::int64_t project_id, std::int64_t trial_id,
           const KeepClasses& classes);

  std::int16_t ClassOf(std::string_view metric_group) const;
  // Those that some group may get, ascending.
  const std::vector<KeepClass>& used() const { return used_; }

 private:
  std::int16_t usual_ = 0;
  // Groups that some place names.
  std::map<std::string, std::int16_t, std::less<>> of_group_;
  std::vector<KeepClass> used_;
};

}  // namespace stepwell
