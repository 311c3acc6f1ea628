// Whether an agent serves a spool root: its lock is held (spool_format.h). The kernel frees the lock
// of an agent that died, so that the answer is never stale; it holds across PID namespaces.
#pragma once

#include <sys/types.h>

#include <string>

namespace stepwell::recorder {

struct AgentPresence {
  bool is_served = false;
  // Who holds the lock; 0 = nobody, or not visible in this PID namespace.
  pid_t holder = 0;
};

// Of this format's agents. Served, too, where this process has no descriptor left to ask with: it has
// other troubles than a second agent. Blocks on the file system.
AgentPresence LookForAgent(const std::string& root);
bool IsServed(const std::string& root);

// The same of a system agent's root, which strangers may write to: only where it and its format's
// directory are root's, or this user's own if `may_be_own`.
bool IsSystemRootServed(const std::string& root, bool may_be_own);

}  // namespace stepwell::recorder
