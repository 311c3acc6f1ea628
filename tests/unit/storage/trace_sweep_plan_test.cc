#include "storage/trace_sweep_plan.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

// Of 10 bytes each, the oldest first, an hour apart; 3 is being uploaded.
std::vector<KeptTrace> Kept() {
  std::vector<KeptTrace> kept;
  for (std::int32_t number = 1; number <= 5; ++number) {
    kept.push_back({.trace_no = number,
                    .byte_count = 10,
                    .age_seconds = (6 - number) * 3600,
                    .is_whole = number != 3});
  }
  return kept;
}

TEST(TraceSweepPlanTest, TakesTheOldestAndNoUploadForItsBytes) {
  const struct {
    const char* name;
    TraceBounds bounds;
    const char* goes;
  } rows[] = {
      {"no bound", {}, ""},
      {"just within", {.age_seconds = 5 * 3600, .bytes = 50}, ""},
      {"too old",
       {.age_seconds = 2 * 3600},
       "1 trace_age_seconds, 2 trace_age_seconds, 3 trace_age_seconds, "},
      {"too much", {.bytes = 49}, "1 trial_trace_bytes, "},
      {"an upload stays",
       {.bytes = 20},
       "1 trial_trace_bytes, 2 trial_trace_bytes, 4 trial_trace_bytes, "},
      {"what is too old makes room",
       {.age_seconds = 4 * 3600, .bytes = 30},
       "1 trace_age_seconds, 2 trial_trace_bytes, "},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    std::string goes;
    for (const TraceGiveUp& each : PlanTraceSweep(Kept(), row.bounds)) {
      absl::StrAppend(&goes, each.trace.trace_no, " ", each.reason, ", ");
    }
    EXPECT_EQ(goes, row.goes);
  }
}

}  // namespace
}  // namespace stepwell
