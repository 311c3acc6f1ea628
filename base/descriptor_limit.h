// How many descriptors this process may have: as many as its hard limit allows. The usual soft one of 1024 is two addresses'
// worth of a master's connections, and a few busy ranks' rings and segments of an agent. Programs that it starts inherit it.
#pragma once

#include <sys/resource.h>

namespace stepwell {

// Best effort: where it cannot be raised it stays.
inline void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace stepwell
