#include "bench/load/bench_run.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace stepwell::bench {

void DieUnless(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void StayOnTwoCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&chosen) < 2; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &chosen);
  }
  sched_setaffinity(0, sizeof(chosen), &chosen);
}

}  // namespace stepwell::bench
