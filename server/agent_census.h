// AgentCensus: who is connected to this master, as its status tells it. Stands between the streams, each of
// which knows its own client, and AdminService. A core.
//
//   AgentCensus census = TakeCensus(std::move(all), kAgentsToldMax);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepwell {

// As pb::ConnectedAgent.
struct ConnectedAgent {
  std::string agent_id;
  std::string agent_version;
  int writers_open = 0;
  std::int64_t since_time_us = 0;
  std::int64_t seen_time_us = 0;
};

// 500 of the longest names and versions are below 150 kB; a page that asks every two seconds can have them.
inline constexpr std::size_t kAgentsToldMax = 500;

struct AgentCensus {
  // By host, then by age.
  std::vector<ConnectedAgent> agents;
  std::int64_t left_out = 0;
};

// Of more than `told_max`, those that were silent the longest: they are the ones that are looked for.
AgentCensus TakeCensus(std::vector<ConnectedAgent> all, std::size_t told_max);

}  // namespace stepwell
