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

struct NetworkFileSystem {
  std::uint32_t type;  // statfs(2)'s f_type
  const char* name;
};
constexpr std::array<NetworkFileSystem, 13> kNetworkFileSystems = {{{0x6969, "NFS"},
                                                                    {0xff534d42, "CIFS"},
                                                                    {0xfe534d42, "SMB2"},
                                                                    {0x517b, "SMB"},
                                                                    {0x65735546, "FUSE"},
                                                                    {0x01021997, "9p"},
                                                                    {0x0bd00bd0, "Lustre"},
                                                                    {0x47504653, "GPFS"},
                                                                    {0x00c36400, "Ceph"},
                                                                    {0x5346414f, "AFS"},
                                                                    {0x6b414653, "AFS"},
                                                                    {0x73757245, "Coda"},
                                                                    {0x19830326, "BeeGFS"}}};

// Why `fd` is no place for a spool, empty if it is one.
std::string ReasonToRefuse(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return std::strerror(errno);
  if (found.st_uid != geteuid()) return "it belongs to another user";
  if ((found.st_mode & 077) != 0) return "others may enter it (chmod 700 it)";
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return std::strerror(errno);
  if (const char* name = NetworkFileSystemName(static_cast<std::uint32_t>(system.f_type))) {
    return std::string("it lies on ") + name +
           ", whose hung server would hang the training (choose a local file system)";
  }
  return "";
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
  if (const std::string reason = ReasonToRefuse(fd); !reason.empty()) {
    *message = "the spool directory " + shown + " is refused: " + reason;
    return UniqueFd();
  }
  return directory;
}

}  // namespace

const char* NetworkFileSystemName(std::uint32_t type) {
  const auto found =
      std::find_if(kNetworkFileSystems.begin(), kNetworkFileSystems.end(),
                   [type](const NetworkFileSystem& known) { return known.type == type; });
  return found == kNetworkFileSystems.end() ? nullptr : found->name;
}

UniqueFd OpenSpoolRoot(const std::string& root, std::string* message) {
  return OpenAt(AT_FDCWD, root, root, message);
}

UniqueFd OpenSpoolFolder(const UniqueFd& parent, const std::string& name, const std::string& shown,
                         std::string* message) {
  return OpenAt(parent.get(), name, shown, message);
}

}  // namespace stepwell::recorder
