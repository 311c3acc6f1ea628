#include "base/clock.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(ClockTest, AFakeClockMovesOnlyWhenTold) {
  FakeClock clock(absl::FromUnixSeconds(1000));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1000));
  clock.Advance(absl::Milliseconds(200));
  EXPECT_EQ(clock.Now(), absl::FromUnixMillis(1'000'200));
  EXPECT_EQ(clock.Monotonic(), absl::Milliseconds(200));
}

TEST(ClockTest, TheRealOnesMonotonicNeverStepsBack) {
  absl::Duration before = RealClock::Get().Monotonic();
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration now = RealClock::Get().Monotonic();
    EXPECT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace stepwell
