#include "tests/faults/small_disk.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/faults/own_mounts.h"

namespace stepwell::faults {

std::string MountSmallDisk(const std::string& directory, const char* size) {
  if (mkdir(directory.c_str(), 0700) != 0) {
    return absl::StrCat("there is no directory for it: ", std::strerror(errno));
  }
  std::string why = TakeOwnMounts(directory);
  if (why.empty() && mount("none", directory.c_str(), "tmpfs", MS_NOSUID,
                           absl::StrCat("mode=0700,size=", size).c_str()) != 0) {
    why = absl::StrCat("no tmpfs can be mounted: ", std::strerror(errno));
  }
  if (!why.empty()) rmdir(directory.c_str());
  return why;
}

void FillUp(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const std::string block(4096, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

bool ResizeSmallDisk(const std::string& directory, const std::string& size) {
  return mount("none", directory.c_str(), nullptr, MS_REMOUNT | MS_NOSUID,
               absl::StrCat("size=", size).c_str()) == 0;
}

bool TightenSmallDisk(const std::string& directory) {
  // Whoever writes to it meanwhile makes what was asked for too little.
  for (int tries = 0; tries < 100; ++tries) {
    struct statvfs use {};
    if (statvfs(directory.c_str(), &use) != 0) return false;
    // None at all would be no limit.
    const std::uint64_t used = std::max<std::uint64_t>(1, use.f_blocks - use.f_bfree);
    if (ResizeSmallDisk(directory, absl::StrCat(used * use.f_frsize))) return true;
  }
  return false;
}

}  // namespace stepwell::faults
