#include "client/cli/compare_data.h"

#include <set>

namespace stepwell::cli {
namespace {

// The wire contract's bound of group_by.
constexpr std::size_t kLabelsMax = 32;

// Where a sample comes from: see docs/metrics.md.
bool SaysWhere(const std::string& label) {
  static const std::set<std::string> labels = {"rank",   "agent",     "device", "parent", "worker",
                                               "loader", "container", "core",   "port"};
  return labels.contains(label);
}

}  // namespace

std::vector<std::string> LabelsToKeep(const std::vector<v1::Series>& series) {
  // A device's clock is never mixed with the host's.
  std::set<std::string> kept = {"clock"};
  for (const v1::Series& one : series) {
    for (const auto& [name, value] : one.key().labels()) {
      if (kept.size() < kLabelsMax && !SaysWhere(name)) kept.insert(name);
    }
  }
  return {kept.begin(), kept.end()};
}

std::int64_t CountRanks(const std::vector<v1::Series>& series) {
  std::set<std::string> ranks;
  for (const v1::Series& one : series) {
    const auto rank = one.key().labels().find("rank");
    if (one.key().metric_group() != "timing" || one.key().name() != "step") continue;
    if (rank != one.key().labels().end()) ranks.insert(rank->second);
  }
  return static_cast<std::int64_t>(ranks.size());
}

}  // namespace stepwell::cli
