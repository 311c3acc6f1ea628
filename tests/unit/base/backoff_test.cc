#include "base/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>

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

// Full jitter: over all of the range, not a tenth around its middle.
TEST(BackoffTest, DelaysLieAllOverTheirRange) {
  const absl::Duration first = absl::Seconds(1), longest = absl::Seconds(8);
  Backoff backoff({.first = first, .longest = longest});
  absl::Duration least = absl::InfiniteDuration(), most = absl::ZeroDuration();
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const absl::Duration delay = backoff.NextDelay();
    if (attempt < 3) continue;  // the range still grows
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  // 0.95^997 is 1e-22.
  const absl::Duration twentieth = (longest - first / 2) / 20;
  EXPECT_LT(least, first / 2 + twentieth);
  EXPECT_GT(most, longest - twentieth);
}

}  // namespace
}  // namespace stepwell
