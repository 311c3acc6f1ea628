// TreeCpuSeconds: what a process and all below it have burned. Thread-safe.
#pragma once

#include <sys/types.h>

namespace stepwell::bench {

// User and system time, reaped children's included, in seconds.
double TreeCpuSeconds(pid_t root);

}  // namespace stepwell::bench
