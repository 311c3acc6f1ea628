#include "server/disk_space.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kLowBytesMin = 512 * kMiB;
constexpr std::int64_t kLowBytesMax = 16384 * kMiB;

// Rounded up: "0 MiB are needed" would help nobody.
std::string MiB(std::int64_t bytes) { return absl::StrCat((bytes + kMiB - 1) / kMiB, " MiB"); }

}  // namespace

absl::StatusOr<DiskFree> ReadDiskFree(const std::string& holds, const std::string& path) {
  struct statvfs about {};
  if (statvfs(path.c_str(), &about) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("free space of ", path, ": ", std::strerror(errno)));
  }
  const auto block = static_cast<std::int64_t>(about.f_frsize);
  return DiskFree{.holds = holds,
                  .path = path,
                  .free_bytes = static_cast<std::int64_t>(about.f_bavail) * block,
                  .total_bytes = static_cast<std::int64_t>(about.f_blocks) * block};
}

std::int64_t DiskSpace::LowMark(std::int64_t total_bytes) const {
  if (options_.low_bytes > 0) return options_.low_bytes;
  return std::min(std::clamp(total_bytes / 50, kLowBytesMin, kLowBytesMax), total_bytes / 4);
}

bool DiskSpace::Judge(const std::vector<DiskFree>& disks) {
  const bool before = low();
  std::string reason, path;
  for (const DiskFree& disk : disks) {
    const std::int64_t mark = LowMark(disk.total_bytes);
    const std::int64_t room_mark = mark + mark / 4;
    if (disk.free_bytes >= (before ? room_mark : mark)) continue;
    reason = absl::StrCat("disk low: ", MiB(disk.free_bytes), " free for PostgreSQL's ", disk.holds,
                          ", the mark is ", MiB(mark), "; samples are taken again from ",
                          MiB(room_mark), " on: make room, or lower --disk-low-bytes");
    path = disk.path;
    break;
  }
  reason_ = std::move(reason);
  low_path_ = std::move(path);
  return low() != before;
}

}  // namespace stepwell
