#include "tests/faults/breakable_disk.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/faults/own_mounts.h"
#include "tests/support/child_process.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

constexpr char kMake[] = "/usr/sbin/mkfs.ext4";
constexpr char kMount[] = "/bin/mount";
constexpr off_t kBytes = 64 << 20;

bool Do(const std::vector<std::string>& words) {
  if (access(words[0].c_str(), X_OK) != 0) return false;
  testing::ChildProcess child;
  child.Start(words, {}, "/dev/null");
  return child.Wait(absl::Seconds(30)) == "exit 0";
}

}  // namespace

BreakableDisk::BreakableDisk(const std::string& directory)
    : directory_(directory), trouble_(Mount()) {}

BreakableDisk::~BreakableDisk() { umount2(directory_.c_str(), MNT_DETACH); }

std::string BreakableDisk::Mount() const {
  if (mkdir(directory_.c_str(), 0700) != 0) return std::strerror(errno);
  const std::string rings = absl::StrCat("/dev/shm/stepwell-", geteuid());
  mkdir(rings.c_str(), 0700);
  for (const std::string& place : {directory_, rings}) {
    if (const std::string why = TakeOwnMounts(place); !why.empty()) return why;
  }
  if (mount("none", rings.c_str(), "tmpfs", MS_NOSUID, "mode=0700") != 0) {
    return absl::StrCat("no tmpfs can be mounted: ", std::strerror(errno));
  }
  const std::string image = directory_ + ".img";
  std::ofstream(image).flush();
  std::error_code error;
  fs::resize_file(image, kBytes, error);
  if (error || !Do({kMake, "-q", "-F", image})) return "no ext4 can be made";
  if (!Do({kMount, "-o", "loop,errors=remount-ro", image, directory_})) return "no loop device";
  return "";
}

bool BreakableDisk::TurnReadOnly() const {
  const int root = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat status {};
  const bool is_synced = root >= 0 && syncfs(root) == 0 && fstat(root, &status) == 0;
  close(root);
  if (!is_synced) return false;
  std::error_code error;
  const fs::path device = fs::read_symlink(
      absl::StrCat("/sys/dev/block/", major(status.st_dev), ":", minor(status.st_dev)), error);
  if (error) return false;
  const fs::path trigger = "/sys/fs/ext4" / device.filename() / "trigger_fs_error";
  std::ofstream(trigger) << "1" << std::flush;
  const int probe =
      open(absl::StrCat(directory_, "/probe").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int why = errno;
  if (probe >= 0) close(probe);
  return probe < 0 && why == EROFS;
}

}  // namespace stepwell::faults
