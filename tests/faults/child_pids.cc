#include "tests/faults/child_pids.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace stepwell::faults {

std::vector<pid_t> ChildPids(pid_t parent) {
  std::vector<pid_t> pids;
  std::ifstream children(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  for (pid_t child = 0; children >> child;) pids.push_back(child);
  return pids;
}

}  // namespace stepwell::faults
