// SpoolRoots are the directories below which a process may keep its spool, in the order in which
// they are tried. What is decided here is pure; whether a directory will do is for spool_root.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/recorder/src/environment.h"

namespace stepwell::recorder {

enum class RootKind {
  kGiven,    // by options.spool_dir or STEPWELL_SPOOL_DIR; where it is refused, no other is taken
  kSystem,   // the user's own below the root of a system agent
  kDefault,  // stepwell-UID in a directory for temporary files
  kPrivate,  // a fresh one beside a default root that was refused
};

struct SpoolRoot {
  RootKind kind = RootKind::kGiven;
  std::string path;  // absolute; of a private one the pattern that mkdtemp takes
};

struct RootSurroundings {
  Environment environment;
  std::string working_directory;
  std::uint32_t user = 0;
  // Whether a system agent serves `root`. It must belong to root, or may be this user's own, too.
  std::function<bool(const std::string& root, bool may_be_own)> is_served;
};

std::string MakeAbsolute(const std::string& path, const std::string& working_directory);

// `given` is options.spool_dir, empty = not given. Never empty; never below a home directory unless
// the user or the launcher says so. Asks is_served, else pure.
std::vector<SpoolRoot> ListRoots(const std::string& given, const RootSurroundings& around);

}  // namespace stepwell::recorder
