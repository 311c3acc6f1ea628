// ProjectFilter: the projects of whose trials somebody may be told. What lies in others is not there for him. There is
// none by default: who looks for a trial says for whom, or it does not compile. At most as many as a token has
// grants. A value.
//
//   if (!projects.LetsThrough("vision")) return NoSuchTrial(selector);
//   store.FindTrial(selector, kAllProjects, deadline);   // nobody is told of it who may not be told of all
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

class ProjectFilter {
 public:
  enum class All { kProjects };

  // NOLINTBEGIN(google-explicit-constructor): read as what they are.
  ProjectFilter(All /*projects*/) : is_all_(true) {}
  // Those alone; none of them = nothing is let through.
  ProjectFilter(std::vector<std::string> named) : named_(std::move(named)) {}
  // NOLINTEND(google-explicit-constructor)

  bool is_all() const { return is_all_; }
  // Empty where all are let through.
  const std::vector<std::string>& named() const { return named_; }
  bool LetsThrough(const std::string& project) const {
    return is_all_ || std::find(named_.begin(), named_.end(), project) != named_.end();
  }
  bool operator==(const ProjectFilter&) const = default;

 private:
  bool is_all_ = false;
  std::vector<std::string> named_ = {};
};

inline constexpr ProjectFilter::All kAllProjects = ProjectFilter::All::kProjects;

}  // namespace stepwell
