#include "tests/faults/own_mounts.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

struct MountPoint {
  std::string path;
  bool is_shared = false;
};

// Those that can be reached from our root: that of a chroot which is none itself is not among them.
std::vector<MountPoint> MountPoints() {
  std::vector<MountPoint> points;
  std::ifstream lines("/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    MountPoint point;
    // A space in it is \040.
    if (words.size() < 6 || !absl::CUnescape(words[4], &point.path)) continue;
    for (std::size_t i = 6; i < words.size() && words[i] != "-"; ++i) {
      if (absl::StartsWith(words[i], "shared:")) point.is_shared = true;
    }
    points.push_back(point);
  }
  return points;
}

bool MakePrivate(const std::string& path, unsigned long flags) {
  return mount("none", path.c_str(), nullptr, MS_PRIVATE | flags, nullptr) == 0;
}

// The mount that a chroot lies on has no path there, so that nobody can make it private; but what is mounted on a shared one is
// shared, too, which is asked of a mount of `directory` on itself.
std::string TroubleInAChroot(const std::string& directory) {
  for (const MountPoint& point : MountPoints()) MakePrivate(point.path, 0);
  std::error_code error;
  const std::string path = fs::canonical(directory, error);
  if (error || mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return absl::StrCat(
        "the root is no mount of its own (a chroot?), and nothing can be mounted in it: ",
        error ? error.message() : std::strerror(errno));
  }
  bool is_there = false;
  bool is_shared = false;
  for (const MountPoint& point : MountPoints()) {
    if (point.path != path) continue;
    is_there = true;
    is_shared = point.is_shared;
  }
  umount2(path.c_str(), MNT_DETACH);
  if (!is_there)
    return "the root is no mount of its own (a chroot?), and /proc does not tell mounts";
  if (!is_shared) return "";
  return "the root is no mount of its own (a chroot?), and what it lies on is shared with others, "
         "who would see a test's mounts";
}

}  // namespace

std::string TakeOwnMounts(const std::string& directory) {
  if (unshare(CLONE_NEWNS) != 0) {
    return absl::StrCat("no mounts of its own are allowed here (it wants root, or CAP_SYS_ADMIN): ",
                        std::strerror(errno));
  }
  if (MakePrivate("/", MS_REC)) return "";
  if (errno == EINVAL) return TroubleInAChroot(directory);
  return absl::StrCat("no mounts of its own: ", std::strerror(errno));
}

}  // namespace stepwell::faults
