// What a process and all below it have burned, by the kernel's account. Thread-safe.
//
//   const double before = TreeCpuSeconds(pid);
//   for (const ProcessUse& use : TreeUse(pid)) ...
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace stepwell::bench {

struct ProcessUse {
  pid_t pid = 0;
  // With those of reaped children.
  double user_seconds = 0;
  double system_seconds = 0;
  // Pages that were touched for the first time, or came back, without reading a disk.
  std::int64_t minor_faults = 0;
};

// The process first, then all below it, in no order. Empty where there is none.
std::vector<ProcessUse> TreeUse(pid_t root);

// User and system time of all of them.
double TreeCpuSeconds(pid_t root);

}  // namespace stepwell::bench
