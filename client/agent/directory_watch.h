// DirectoryWatch: whether a directory may hold another name than when it was last listed. Listing
// costs more than all else of an idle visit. Thread-compatible.
//
//   if (watch.MayHaveChanged(directory)) names = ListNames(directory);
#pragma once

#include <sys/stat.h>
#include <time.h>

namespace stepwell::agent {

class DirectoryWatch {
 public:
  // The kernel's clock for such times ticks each few milliseconds, so that a directory may change
  // twice at one time: one that changed just now is listed again. So is one of the future, by a clock
  // that was set.
  bool MayHaveChanged(int directory) {
    struct stat status {};
    timespec now{};
    if (fstat(directory, &status) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return true;
    const bool is_same =
        status.st_mtim.tv_sec == changed_.tv_sec && status.st_mtim.tv_nsec == changed_.tv_nsec;
    const bool is_settled = now.tv_sec - status.st_mtim.tv_sec > 1;
    changed_ = status.st_mtim;
    return !is_same || !is_settled;
  }

 private:
  timespec changed_ = {};
};

}  // namespace stepwell::agent
