#include "storage/refusal_rest.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(RefusalRestTest, RestsForEachThatWasRefusedButNotForEver) {
  const SteadyTime now = SteadyTime::Now();
  struct Case {
    std::size_t count;
    absl::Duration rest;
  };
  for (const Case& each : {Case{1, absl::Microseconds(100)}, Case{1000, absl::Milliseconds(100)},
                           Case{10'000, absl::Milliseconds(500)}}) {
    RefusalRest rest;
    rest.After(TrialId{7}, each.count, now);
    EXPECT_EQ(rest.End(TrialId{7}) - now, each.rest) << each.count;
  }
}

TEST(RefusalRestTest, WhatIsOwedIsAddedUpOfEachTrialByItself) {
  const SteadyTime now = SteadyTime::Now();
  RefusalRest rest;
  rest.After(TrialId{7}, 1000, now);
  rest.After(TrialId{7}, 1000, now + absl::Milliseconds(40));
  rest.After(TrialId{8}, 500, now + absl::Milliseconds(40));
  EXPECT_EQ(rest.End(TrialId{7}) - now, absl::Milliseconds(200));
  EXPECT_EQ(rest.End(TrialId{8}) - now, absl::Milliseconds(90));
  // What is over counts for nothing.
  rest.After(TrialId{7}, 1000, now + absl::Seconds(9));
  EXPECT_EQ(rest.End(TrialId{7}) - now, absl::Seconds(9) + absl::Milliseconds(100));
}

TEST(RefusalRestTest, WhereNothingWasRefusedThereIsNone) {
  RefusalRest rest;
  rest.After(TrialId{7}, 0, SteadyTime::Now());
  EXPECT_TRUE(rest.End(TrialId{7}).HasPassed());
  EXPECT_TRUE(rest.End(TrialId{8}).HasPassed());
}

}  // namespace
}  // namespace stepwell
