// DiskSpace: whether the disks under the private PostgreSQL have room for more. A full disk ends a
// commit, a full WAL disk the whole server: nothing more is taken before that. Judges with two marks,
// so that a disk at its edge does not flutter. A core; ReadDiskFree alone asks the system.
//
//   DiskSpace space({.low_bytes = options.disk_low_bytes});
//   if (space.Judge(disks)) log::Warning("disk_low", {{"why", space.reason()}, {"path", space.low_path()}});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell {

struct DiskFree {
  std::string holds;  // "data", "WAL"
  std::string path;
  // For an unprivileged process.
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

// Of the file system that `path` lies on. kFailedPrecondition where it cannot be asked.
absl::StatusOr<DiskFree> ReadDiskFree(const std::string& holds, const std::string& path);

class DiskSpace {
 public:
  struct Options {
    // 0 = 2 % of the disk, from 512 MiB to 16 GiB, at most a quarter of it.
    std::int64_t low_bytes = 0;
  };

  explicit DiskSpace(Options options) : options_(options) {}

  // True when the answer has changed: low below the mark, room again from a quarter above it.
  bool Judge(const std::vector<DiskFree>& disks);
  bool low() const { return !reason_.empty(); }
  // Which disk, what it has and what is wanted; empty while all have room. Clients are told it, strangers by
  // /readyz, too: it names no path.
  const std::string& reason() const { return reason_; }
  // Where the disk is that `reason` tells of: for the log alone.
  const std::string& low_path() const { return low_path_; }

  std::int64_t LowMark(std::int64_t total_bytes) const;

 private:
  const Options options_;
  std::string reason_;
  std::string low_path_;
};

}  // namespace stepwell
