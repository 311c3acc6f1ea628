#include "base/machine_name.h"

#include <unistd.h>

#include <cstdlib>

namespace stepwell {

std::string MachineName() {
  for (const char* variable : {"STEPWELL_AGENT_ID", "NODE_NAME", "SLURMD_NODENAME"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  }
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace stepwell
