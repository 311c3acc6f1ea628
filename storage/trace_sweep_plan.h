// TraceSweepPlan: which traces of a trial its caps take: a sweep gives them up, a preview tells them. A core; pure.
//
//   for (const TraceGiveUp& each : PlanTraceSweep(kept, {.age_seconds = day, .bytes = gib})) ...
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace stepwell {

// One that is whole or being uploaded.
struct KeptTrace {
  std::int32_t trace_no = 0;
  std::int64_t byte_count = 0;
  std::int64_t age_seconds = 0;
  std::int64_t created_time_us = 0;
  bool is_whole = false;
};

struct TraceBounds {
  std::int64_t age_seconds = 0;  // 0 = none
  std::int64_t bytes = 0;        // of all; 0 = none
};

struct TraceGiveUp {
  KeptTrace trace = {};
  const char* reason = "";  // the cap's name, as in CapField
};

// `kept`: all of the trial, the oldest first, and no others. Too old ones go; then, from the oldest on, whole ones until the
// rest is within the bytes: what is being uploaded would only come again.
std::vector<TraceGiveUp> PlanTraceSweep(absl::Span<const KeptTrace> kept,
                                        const TraceBounds& bounds);

}  // namespace stepwell
