#include "client/recorder/src/spool_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
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

std::string ReasonAgainstType(const struct statfs& system) {
  const char* name = NetworkFileSystemName(static_cast<std::uint32_t>(system.f_type));
  if (name == nullptr) return "";
  return std::string("it lies on ") + name +
         ", whose hung server would hang the training (choose a local file system)";
}

// Why `fd` is no place for a spool, empty if it is one.
std::string ReasonToRefuse(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return std::strerror(errno);
  if (found.st_uid != geteuid()) return "it belongs to another user";
  if ((found.st_mode & 077) != 0) return "others may enter it (chmod 700 it)";
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return std::strerror(errno);
  return ReasonAgainstType(system);
}

// Why nothing should be made beside `path`, empty if it may. Asked before a directory is left there.
std::string ReasonAgainstParent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct statfs system {};
  return statfs(parent.c_str(), &system) == 0 ? ReasonAgainstType(system) : "";
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
  struct stat found {};
  if (lstat(root.c_str(), &found) != 0 && errno == ENOENT) {
    if (const std::string reason = ReasonAgainstParent(root); !reason.empty()) {
      *message = "the spool directory " + root + " is refused: " + reason;
      return UniqueFd();
    }
  }
  return OpenAt(AT_FDCWD, root, root, message);
}

std::string MakePrivateRoot(const std::string& pattern, std::string* message) {
  std::string path = pattern;
  std::string reason = ReasonAgainstParent(pattern);
  if (reason.empty() && mkdtemp(path.data()) != nullptr) return path;
  if (reason.empty()) reason = std::strerror(errno);
  *message = "cannot make a spool directory " + pattern + ": " + reason;
  return "";
}

UniqueFd OpenSpoolFolder(const UniqueFd& parent, const std::string& name, const std::string& shown,
                         std::string* message) {
  return OpenAt(parent.get(), name, shown, message);
}

}  // namespace stepwell::recorder
