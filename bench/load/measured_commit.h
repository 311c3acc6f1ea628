// The commit that a bench measures, for the tables that it writes for people: bench/run.sh says it. Header only.
//
//   std::fprintf(stderr, "commit %s\n", MeasuredCommit());
#pragma once

#include <cstdlib>

namespace stepwell::bench {

inline const char* MeasuredCommit() {
  const char* commit = std::getenv("STEPWELL_BENCH_COMMIT");
  return commit != nullptr ? commit : "unknown";
}

}  // namespace stepwell::bench
