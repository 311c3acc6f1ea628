#include "storage/trace_sweep_plan.h"

namespace stepwell {

std::vector<TraceGiveUp> PlanTraceSweep(absl::Span<const KeptTrace> kept,
                                        const TraceBounds& bounds) {
  std::int64_t kept_bytes = 0;
  for (const KeptTrace& trace : kept) kept_bytes += trace.byte_count;
  std::vector<TraceGiveUp> plan;
  for (const KeptTrace& trace : kept) {
    const bool is_old = bounds.age_seconds > 0 && trace.age_seconds > bounds.age_seconds;
    const bool is_beyond = bounds.bytes > 0 && kept_bytes > bounds.bytes && trace.is_whole;
    if (!is_old && !is_beyond) continue;
    plan.push_back({trace, is_old ? "trace_age_seconds" : "trial_trace_bytes"});
    kept_bytes -= trace.byte_count;
  }
  return plan;
}

}  // namespace stepwell
