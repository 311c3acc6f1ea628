#include "storage/turn_rest.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(TurnRestTest, RestsTwiceAsLongAsTheTurnTookButNotForEver) {
  const SteadyTime begin = SteadyTime::Now();
  struct Case {
    absl::Duration took;
    absl::Duration rest;
  };
  for (const Case& each : {Case{absl::ZeroDuration(), absl::ZeroDuration()},
                           Case{absl::Milliseconds(30), absl::Milliseconds(60)},
                           Case{absl::Milliseconds(250), absl::Milliseconds(500)},
                           Case{absl::Seconds(7), absl::Milliseconds(500)}}) {
    TurnRest rest({});
    rest.After(begin, begin + each.took);
    EXPECT_EQ(rest.end() - (begin + each.took), each.rest) << each.took;
  }
}

TEST(TurnRestTest, BeforeTheFirstTurnThereIsNone) { EXPECT_TRUE(TurnRest({}).end().HasPassed()); }

}  // namespace
}  // namespace stepwell
