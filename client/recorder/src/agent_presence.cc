#include "client/recorder/src/agent_presence.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "client/recorder/src/spool_format.h"
#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

bool IsServed(const std::string& root) { return LookForAgent(root).is_served; }

AgentPresence LookForAgent(const std::string& root) {
  const std::string path = root + "/" + spool::kFormatDirectory + "/" + spool::kAgentLockFile;
  // Neither a link nor a pipe that somebody put there is followed or waited for.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return {.is_served = errno == EMFILE || errno == ENFILE};
  struct flock asked {};
  asked.l_type = F_WRLCK;
  asked.l_whence = SEEK_SET;
  asked.l_len = 1;
  // Strangers may read a system agent's lock file, and so hold it to read. An agent holds it to write.
  const bool is_held = fcntl(file.get(), F_GETLK, &asked) == 0 && asked.l_type == F_WRLCK;
  return {is_held, is_held ? std::max<pid_t>(asked.l_pid, 0) : 0};
}

bool IsSystemRootServed(const std::string& root, bool may_be_own) {
  // What lies in it may be made by anybody, and so may a lock be held.
  for (const std::string& path : {root, root + "/" + spool::kFormatDirectory}) {
    struct stat found {};
    if (lstat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) return false;
    if (found.st_uid != 0 && !(may_be_own && found.st_uid == geteuid())) return false;
  }
  return IsServed(root);
}

}  // namespace stepwell::recorder
