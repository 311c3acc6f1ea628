// The name that people know this machine by: STEPWELL_AGENT_ID, else what the scheduler calls the node
// (NODE_NAME, SLURMD_NODENAME), else the hostname. As given: it may hold anything.
#pragma once

#include <string>

namespace stepwell {

std::string MachineName();

}  // namespace stepwell
