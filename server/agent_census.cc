#include "server/agent_census.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stepwell {

AgentCensus TakeCensus(std::vector<ConnectedAgent> all, std::size_t told_max) {
  AgentCensus census;
  if (all.size() > told_max) {
    census.left_out = static_cast<std::int64_t>(all.size() - told_max);
    const auto bound = all.begin() + static_cast<std::ptrdiff_t>(told_max);
    std::nth_element(all.begin(), bound, all.end(),
                     [](const ConnectedAgent& a, const ConnectedAgent& b) {
                       return a.seen_time_us < b.seen_time_us;
                     });
    all.erase(bound, all.end());
  }
  std::sort(all.begin(), all.end(), [](const ConnectedAgent& a, const ConnectedAgent& b) {
    return std::tie(a.agent_id, a.since_time_us) < std::tie(b.agent_id, b.since_time_us);
  });
  census.agents = std::move(all);
  return census;
}

}  // namespace stepwell
