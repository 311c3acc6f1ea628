// NarrowPlace: what a process may not do in some containers: let a file grow beyond a size, start a process. For the rest
// of its life, and its threads'.
#pragma once

#include <cstdint>

namespace stepwell::faults {

// As `ulimit -f`: who writes behind it gets SIGXFSZ, which ends it. 0 = no limit.
void LimitFiles(std::int64_t bytes);

// As a seccomp profile without processes: threads may be made, fork and posix_spawn are refused. Ends the process with 77
// where the kernel cannot.
void ForbidProcesses();

}  // namespace stepwell::faults
