// The rules a spool directory must meet before a trial writes into it.
#pragma once

#include <cstdint>
#include <string>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

// Of statfs(2)'s f_type; null for file systems of this machine.
const char* NetworkFileSystemName(std::uint32_t type);

// Opens the directory `root`, making it (not its parents) where it is missing. Refused, with -1 and
// the reason in `message`: a symlink, another user's, wider than 0700, or on a network file system,
// whose hung server would hang the trial.
UniqueFd OpenSpoolRoot(const std::string& root, std::string* message);

// Makes a directory of mode 0700 by mkdtemp's `pattern` and answers its path; "" with the reason in
// `message` where that fails.
std::string MakePrivateRoot(const std::string& pattern, std::string* message);

// Opens the directory `name` in `parent`, making it with mode 0700 where it is missing.
UniqueFd OpenSpoolFolder(const UniqueFd& parent, const std::string& name, const std::string& shown,
                         std::string* message);

}  // namespace stepwell::recorder
