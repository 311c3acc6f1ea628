// ProfileReading: a native profiler's trace, from wherever its bytes come, broken down into its steps. Functions.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/trace/step_breakdown.h"
#include "base/trace/trace_reading.h"

namespace stepwell::cli {

struct ReadProfile {
  StepReport report;
  std::optional<std::int32_t> rank;  // that it tells itself
  std::int64_t bad_count = 0;        // things that are no event
  bool is_cut = false;
};

[[nodiscard]] absl::StatusOr<ReadProfile> ReadProfileOf(const TraceSource& source,
                                                        StepBreakdown::Options options);

// What of it is not counted, a line each; `of` names it where there are others (" of x.json").
void TellLeftOut(const ReadProfile& profile, const std::string& of, std::ostream& err);
void TellNoSteps(const std::string& name, std::ostream& err);

}  // namespace stepwell::cli
