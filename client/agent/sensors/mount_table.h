// MountTable: which file systems a machine has, from /proc/self/mountinfo: those on disks of its
// own, and those of file servers. Pure.
//
//   STEPWELL_ASSIGN_OR_RETURN(const std::vector<Mount> mounts, ParseMounts(text));
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace stepwell::agent {

struct Mount {
  enum class Where { kLocal, kServer };
  std::string path;
  Where where = Where::kLocal;
};

// File systems on local block devices and the root's, and those of file servers; at most 64 of each
// device once, by its shortest path that nothing is mounted over, sorted by path. Images that are
// always full, FUSE, and those in memory are left out.
absl::StatusOr<std::vector<Mount>> ParseMounts(absl::string_view mountinfo);

}  // namespace stepwell::agent
