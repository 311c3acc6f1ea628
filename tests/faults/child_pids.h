// ChildPids: the children of a process now, as the kernel lists them: of a postmaster its backends and helpers.
#pragma once

#include <sys/types.h>

#include <vector>

namespace stepwell::faults {

std::vector<pid_t> ChildPids(pid_t parent);

}  // namespace stepwell::faults
