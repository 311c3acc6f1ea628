// FileOwner: whose files an agent of all users works on. ActAs makes the calling thread one that may
// do with files what that user may, and nothing else: a hostile user then reaches only his own.
// Confined to the thread; threads that are started meanwhile stay as they began.
//
//   const ActAs acting(owner_);      // nullopt: as oneself
#pragma once

#include <sys/types.h>

#include <optional>

namespace stepwell::agent {

struct FileOwner {
  uid_t uid;
  gid_t gid;
};

class ActAs {
 public:
  // REQUIRES: the process is root's, or the owner is the process's own user.
  explicit ActAs(const std::optional<FileOwner>& owner);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

 private:
  std::optional<FileOwner> before_;
};

// The one that the process itself is: within ActAs, for files of the agent's own.
FileOwner Oneself();

// Root's further groups would open to every user's files what only they may read. Of the calling
// thread, and those that it starts.
void DropGroups();

}  // namespace stepwell::agent
