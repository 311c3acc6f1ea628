#include "tests/unit/agent/sync_hooks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {

std::function<int(const std::string& path)> fsync_hook;
int fdatasync_count = 0;
bool fdatasync_fails = false;

}  // namespace stepwell::agent

extern "C" int fsync(int fd) {
  if (stepwell::agent::fsync_hook) {
    std::error_code none;
    const std::string path =
        std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd), none).string();
    if (stepwell::agent::fsync_hook(path) != 0) return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int fdatasync(int fd) {
  ++stepwell::agent::fdatasync_count;
  if (stepwell::agent::fdatasync_fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
