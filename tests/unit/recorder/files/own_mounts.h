// Mounts that this process alone sees, and that end with it.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace stepwell::recorder {

inline void TellKernel(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, text.data(), text.size()) < 0) std::perror(path);
  close(fd);
}

// False where this is not allowed. REQUIRES: the process has one thread.
inline bool TakeOwnMounts() {
  const std::string user = std::to_string(getuid()), group = std::to_string(getgid());
  if (getuid() == 0) {
    if (unshare(CLONE_NEWNS) != 0) return false;
  } else {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    TellKernel("/proc/self/uid_map", user + " " + user + " 1");
    TellKernel("/proc/self/setgroups", "deny");
    TellKernel("/proc/self/gid_map", group + " " + group + " 1");
  }
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Mounts a tmpfs on `path`, for this process only.
inline bool MountOwnTmpfs(const std::string& path, const std::string& options,
                          unsigned long flags) {
  return TakeOwnMounts() && mount("tmpfs", path.c_str(), "tmpfs", flags, options.c_str()) == 0;
}

}  // namespace stepwell::recorder
