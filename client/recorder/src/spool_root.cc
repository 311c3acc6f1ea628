#include "client/recorder/src/spool_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace stepwell::recorder {
namespace {

// NFS, CIFS, SMB2, FUSE, 9p, Lustre, GPFS, Ceph: statfs(2)'s f_type.
constexpr std::array<std::uint32_t, 8> kNetworkFileSystems = {
    0x6969, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x0bd00bd0, 0x47504653, 0x00c36400};

bool IsOnNetwork(int fd) {
  struct statfs found {};
  if (fstatfs(fd, &found) != 0) return true;
  const auto type = static_cast<std::uint32_t>(found.f_type);
  return std::find(kNetworkFileSystems.begin(), kNetworkFileSystems.end(), type) !=
         kNetworkFileSystems.end();
}

// Why `fd` is no place for a spool, null if it is one.
const char* ReasonToRefuse(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return std::strerror(errno);
  if (found.st_uid != geteuid()) return "it belongs to another user";
  if ((found.st_mode & 077) != 0) return "others may enter it (chmod 700 it)";
  if (IsOnNetwork(fd)) return "it lies on a network file system (choose a local one)";
  return nullptr;
}

UniqueFd OpenAt(int parent, const std::string& name, const std::string& shown,
                std::string* message) {
  if (mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
    *message = "cannot make the spool directory " + shown + ": " + std::strerror(errno);
    return UniqueFd();
  }
  const int fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    const int reason = errno;
    const bool is_link = reason == ELOOP || reason == ENOTDIR;
    *message = "cannot open the spool directory " + shown + ": " +
               (is_link ? "it is a symlink or no directory" : std::strerror(reason));
    return UniqueFd();
  }
  UniqueFd directory(fd);
  if (const char* reason = ReasonToRefuse(fd)) {
    *message = "the spool directory " + shown + " is refused: " + reason;
    return UniqueFd();
  }
  return directory;
}

}  // namespace

UniqueFd OpenSpoolRoot(const std::string& root, std::string* message) {
  return OpenAt(AT_FDCWD, root, root, message);
}

UniqueFd OpenSpoolFolder(const UniqueFd& parent, const std::string& name, std::string* message) {
  return OpenAt(parent.get(), name, name, message);
}

}  // namespace stepwell::recorder
