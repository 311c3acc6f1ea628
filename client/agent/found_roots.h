// FoundRoots: the spool roots of this machine that one would look into, as recorders choose theirs
// (client/recorder/src/spool_format.h, spool_roots.h). Looks at directories only; makes none.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace stepwell::agent {

struct FoundRoot {
  std::string path;
  // The root whose agent serves this one, too (that of all users of a machine); empty = none.
  std::string served_by;
};

// Where to look. Of the environment and the process, unless a test says so.
struct RootPlaces {
  std::string given;                     // STEPWELL_SPOOL_DIR: then it is the only one
  std::string system = "/run/stepwell";  // STEPWELL_SYSTEM_ROOT
  std::vector<std::string> temporary;    // TMPDIR, and /tmp
  uid_t user = 0;

  static RootPlaces OfThisProcess();
};

// The same in words for people: "/tmp/stepwell-1000", ...
std::vector<std::string> DescribePlaces(const RootPlaces& places);

// Those that exist, in the order in which recorders try them. Root sees the system root's users all.
std::vector<FoundRoot> FindSpoolRoots(const RootPlaces& places);

}  // namespace stepwell::agent
