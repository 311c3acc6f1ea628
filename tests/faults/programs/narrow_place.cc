#include "tests/faults/programs/narrow_place.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "tests/support/no_processes.h"

namespace stepwell::faults {
namespace {

constexpr int kExitSkipped = 77;

}  // namespace

void LimitFiles(std::int64_t bytes) {
  if (bytes == 0) return;
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) std::perror("RLIMIT_FSIZE");
}

void ForbidProcesses() {
  std::vector<sock_filter> program = NoProcesses();
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    _exit(kExitSkipped);
  }
}

}  // namespace stepwell::faults
