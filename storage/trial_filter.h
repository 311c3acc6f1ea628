// TrialFilter: the trials to which somebody may add: all of some projects, and single ones beside them, by their names or,
// wherever they lie, by their numbers. To others it is as if there were no such trial. There is none by default, as of
// ProjectFilter, which it is where no trial stands alone. At most as many as a token has grants. A value.
//
//   store.Begin(epoch, selector, TrialFilter({"vision"}, {{"speech", "run-7"}}, {7}), header);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "storage/project_filter.h"

namespace stepwell {

class TrialFilter {
 public:
  // NOLINTBEGIN(google-explicit-constructor): read as what they are.
  TrialFilter(ProjectFilter projects) : projects_(std::move(projects)) {}
  TrialFilter(ProjectFilter::All projects) : projects_(projects) {}
  // NOLINTEND(google-explicit-constructor)
  // `names`: project and external id.
  TrialFilter(ProjectFilter projects, const std::vector<std::pair<std::string, std::string>>& names,
              std::vector<std::int64_t> trial_ids)
      : projects_(std::move(projects)), trial_ids_(std::move(trial_ids)) {
    for (const auto& [project, external_id] : names) {
      name_projects_.push_back(project);
      external_ids_.push_back(external_id);
    }
  }

  // Of these all.
  const ProjectFilter& projects() const { return projects_; }
  const std::vector<std::int64_t>& trial_ids() const { return trial_ids_; }
  // Side by side, one of each for a trial's name.
  const std::vector<std::string>& name_projects() const { return name_projects_; }
  const std::vector<std::string>& external_ids() const { return external_ids_; }
  // A trial without a name has an empty `external_id`, and none of the names.
  bool LetsThrough(std::int64_t trial_id, const std::string& project,
                   const std::string& external_id) const {
    if (projects_.LetsThrough(project)) return true;
    if (std::find(trial_ids_.begin(), trial_ids_.end(), trial_id) != trial_ids_.end()) return true;
    if (external_id.empty()) return false;
    for (std::size_t i = 0; i < external_ids_.size(); ++i) {
      if (name_projects_[i] == project && external_ids_[i] == external_id) return true;
    }
    return false;
  }
  bool operator==(const TrialFilter&) const = default;

 private:
  ProjectFilter projects_;
  std::vector<std::int64_t> trial_ids_ = {};
  std::vector<std::string> name_projects_ = {};
  std::vector<std::string> external_ids_ = {};
};

}  // namespace stepwell
