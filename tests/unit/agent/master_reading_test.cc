#include "client/agent/master_reading.h"

#include <gtest/gtest.h>

namespace stepwell::agent {
namespace {

// This machine's, as somebody set it.
class SetClock : public Clock {
 public:
  absl::Time Now() const override { return RealClock::Get().Now() + set_; }
  absl::Duration Monotonic() const override { return RealClock::Get().Monotonic(); }
  void Set(absl::Duration by) { set_ = by; }

 private:
  absl::Duration set_;
};

TEST(MasterReadingTest, AWallClockThatWasSetIsSeenAndItsJitterIsNot) {
  SetClock clock;
  const ClockAnchor anchor = ClockAnchor::Take();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(WallAheadNs(anchor, clock), 0);
  for (const double seconds : {-3600.0, -0.5, 0.5, 86400.0}) {
    clock.Set(absl::Seconds(seconds));
    EXPECT_NEAR(static_cast<double>(WallAheadNs(anchor, clock)) * 1e-9, seconds, 0.2) << seconds;
  }
}

// What agents write of the master's clock goes by the monotonic one: a trace keeps its line.
TEST(MasterReadingTest, TheMastersClockIsAsFarFromATraceWhoeverSetOurs) {
  SetClock clock;
  const ClockAnchor anchor = ClockAnchor::Take();
  ClockOffset offset;
  EXPECT_FALSE(ReadMasterClock(anchor, offset, clock));
  offset.OnAsked("clock", clock.Monotonic());
  offset.OnAnswered("clock", clock.Now() + absl::Seconds(100), clock.Monotonic());
  const auto before = ReadMasterClock(anchor, offset, clock);
  clock.Set(absl::Hours(5));
  const auto after = ReadMasterClock(anchor, offset, clock);
  ASSERT_TRUE(before && after);
  for (const auto& each : {*before, *after}) {
    EXPECT_LE(std::abs(each.ahead_ns - 100'000'000'000), each.error_ns + 1'000'000)
        << each.ahead_ns;
  }
}

}  // namespace
}  // namespace stepwell::agent
