// Others: whether another user can start what was built here, for tests that give their rights away. A clone below /root,
// which Debian closes to all others, has programs that only root gets to. A function.
//
//   if (const std::string closed = ClosedToOthers(); !closed.empty()) GTEST_SKIP() << "others cannot pass " << closed;
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/places/places.h"

namespace stepwell::testing {

// The folder on the way to the build that they cannot pass; "" = none, or nobody is to become another user.
inline std::string ClosedToOthers() {
  if (geteuid() != 0) return "";
  for (std::filesystem::path folder = BuildPlace("bin"); folder.has_relative_path();
       folder = folder.parent_path()) {
    struct stat found = {};
    if (stat(folder.c_str(), &found) != 0 || (found.st_mode & S_IXOTH) == 0) return folder;
  }
  return "";
}

}  // namespace stepwell::testing
