#include "client/cli/top_metric.h"

#include <set>

namespace stepwell::cli {

std::string TopMetric::Label(const std::string& label) const {
  const auto found = labels.find(label);
  return found == labels.end() ? std::string() : found->second;
}

bool TopMetric::is_system() const {
  static const std::set<std::string> groups = {"gpu", "cpu", "memory", "disk", "network", "agent"};
  return groups.contains(group);
}

}  // namespace stepwell::cli
