// The two things every file of a spool needs: it is made anew and never through a link, and a byte
// of a lock file says that a process lives.
#pragma once

#include <fcntl.h>

#include <string>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

inline UniqueFd NewFile(const UniqueFd& directory, const std::string& name) {
  return UniqueFd(openat(directory.get(), name.c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

inline struct flock WholeByte(off_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// Dies with the process in any PID namespace, and is not inherited by a forked child.
inline bool TakeLockByte(int fd, off_t byte) {
  struct flock wanted = WholeByte(byte);
  return fcntl(fd, F_SETLK, &wanted) == 0;
}

// Whether another process holds it; one's own locks are not seen.
inline bool IsLockByteTaken(int fd, off_t byte) {
  struct flock asked = WholeByte(byte);
  return fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
}

}  // namespace stepwell::recorder
