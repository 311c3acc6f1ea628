// ProjectFilter: the projects of whose trials somebody may be told; nothing = all. What lies in others is not there
// for him. At most as many as a token has grants. A value.
//
//   if (!LetsThrough(projects, "vision")) return NoSuchTrial(selector);
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {

using ProjectFilter = std::optional<std::vector<std::string>>;
inline constexpr std::nullopt_t kAllProjects = std::nullopt;

inline bool LetsThrough(const ProjectFilter& projects, const std::string& project) {
  return !projects || std::find(projects->begin(), projects->end(), project) != projects->end();
}

}  // namespace stepwell
