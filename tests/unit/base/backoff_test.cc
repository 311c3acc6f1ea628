#include "base/backoff.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(BackoffTest, GrowsToTheLongestWithJitterAndResets) {
  Backoff backoff({.first = absl::Milliseconds(200), .longest = absl::Seconds(2)});
  for (int attempt = 0; attempt < 100; ++attempt) {
    SCOPED_TRACE(attempt);
    const absl::Duration delay = backoff.NextDelay();
    EXPECT_GE(delay, absl::Milliseconds(100));
    EXPECT_LE(delay, absl::Seconds(2));
    if (attempt == 0) {
      EXPECT_LE(delay, absl::Milliseconds(200));
    }
    if (attempt == 1) {
      EXPECT_LE(delay, absl::Milliseconds(400));
    }
  }
  backoff.Reset();
  EXPECT_LE(backoff.NextDelay(), absl::Milliseconds(200));
}

TEST(BackoffTest, TwoClientsDoNotComeBackTogether) {
  Backoff one({.first = absl::Seconds(1), .longest = absl::Seconds(64)});
  Backoff two({.first = absl::Seconds(1), .longest = absl::Seconds(64)});
  int same = 0;
  for (int attempt = 0; attempt < 50; ++attempt) same += one.NextDelay() == two.NextDelay() ? 1 : 0;
  EXPECT_LT(same, 3);
}

}  // namespace
}  // namespace stepwell
