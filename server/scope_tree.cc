#include "server/scope_tree.h"

#include <map>
#include <string_view>

namespace stepwell {
namespace {

// Of the scopes with one path, the one that a scope with `labels` inside it belongs to.
std::size_t PickParent(const std::vector<ScopeKey>& scopes,
                       const std::vector<std::size_t>& same_path, const Labels& labels) {
  for (const std::size_t i : same_path) {
    if (scopes[i].labels == labels) return i;
  }
  for (const std::size_t i : same_path) {
    if (scopes[i].labels.empty()) return i;
  }
  return same_path.front();
}

}  // namespace

std::vector<std::optional<std::size_t>> FindParents(const std::vector<ScopeKey>& scopes) {
  std::map<std::string_view, std::vector<std::size_t>> by_path;
  for (std::size_t i = 0; i < scopes.size(); ++i) by_path[scopes[i].path].push_back(i);
  std::vector<std::optional<std::size_t>> parents(scopes.size());
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    std::string_view path = scopes[i].path;
    for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos;
         slash = path.rfind('/')) {
      path = path.substr(0, slash);
      const auto found = by_path.find(path);
      if (found == by_path.end()) continue;
      parents[i] = PickParent(scopes, found->second, scopes[i].labels);
      break;
    }
  }
  return parents;
}

}  // namespace stepwell
