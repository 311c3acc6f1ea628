#include "server/answer_patience.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "server/access_rules.h"

namespace stepwell {
namespace {

TEST(AnswerPatienceTest, AMessageWaitsForItsOwnTimeAndWithinItsCalls) {
  const struct {
    const char* name;
    const char* method;
    double begun;  // seconds ago
    double wait;
  } rows[] = {
      {"a merge", "stepwell.v1.TraceService.MergeTraces", 0, 60},
      {"a merge that takes long", "stepwell.v1.TraceService.MergeTraces", 3600, 60},
      {"who follows", "stepwell.v1.QueryService.FollowSamples", 0, 4},
      {"who follows for a day", "stepwell.v1.QueryService.FollowSamples", 86400, 4},
      {"a read", "stepwell.v1.QueryService.ReadSamples", 0, 60},
      {"a read under way", "stepwell.v1.QueryService.ReadSamples", 59, 1},
      {"a read at its end", "stepwell.v1.QueryService.ReadSamples", 59.9, 0.5},
      {"a read that had to wait for its turn", "stepwell.v1.QueryService.ReadSamples", 61.9, 0.5},
  };
  const SteadyTime now = SteadyTime::Now(FakeClock()) + absl::Hours(100);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const SteadyTime end = EndOfWait(PatienceOf(row.method), now - absl::Seconds(row.begun), now);
    EXPECT_NEAR(absl::ToDoubleSeconds(end - now), row.wait, 1e-6);
  }
}

TEST(AnswerPatienceTest, TheMethodsThatItNamesAreThere) {
  EXPECT_NE(FindRuleOfPath("/stepwell.v1.QueryService/FollowSamples"), nullptr);
  EXPECT_NE(FindRuleOfPath("/stepwell.v1.QueryService/ReadSamples"), nullptr);
}

}  // namespace
}  // namespace stepwell
