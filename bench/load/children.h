// The servers that a bench started, so that none outlives it where it ends in the middle (DieUnless).
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

namespace stepwell::bench {

// Stopped and its directory removed at exit, unless it is ended before.
void AdoptChild(pid_t pid, const std::string& directory);
// SIGTERM, then until it is gone; removes the directory. Does nothing to one that is not adopted.
void EndChild(pid_t pid);
// It ended by itself or is about to, and its directory stays.
void DisownChild(pid_t pid);

}  // namespace stepwell::bench
