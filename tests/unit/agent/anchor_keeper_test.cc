#include "client/agent/anchor_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace stepwell::agent {
namespace {

// A wall clock beside the monotonic one: set by hand, and steered: so many µs too fast each second.
class AnchorKeeperTest : public ::testing::Test {
 protected:
  void Pass(absl::Duration by) {
    clock_.Advance(by);
    wall_us_ += absl::ToInt64Microseconds(by) +
                static_cast<std::int64_t>(absl::ToDoubleSeconds(by) * steered_us_);
  }
  ClockAnchor Now() const {
    const absl::Duration awake = clock_.Monotonic();
    return {wall_us_, static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(awake))};
  }
  AnchorKeeper Keeper(std::optional<ClockAnchor> fixed = std::nullopt) {
    return AnchorKeeper(clock_, fixed, [this] {
      ++take_count_;
      return Now();
    });
  }

  FakeClock clock_;
  std::int64_t wall_us_ = 1'700'000'000'000'000;
  double steered_us_ = 0;
  int take_count_ = 0;
};

TEST_F(AnchorKeeperTest, AgentRule12_AnAnchorIsTakenAtOnceAndThenEachTenSeconds) {
  AnchorKeeper keeper = Keeper();
  EXPECT_TRUE(keeper.TakeDue().has_value());
  for (int tenths = 1; tenths <= 400; ++tenths) {
    Pass(absl::Milliseconds(100));
    EXPECT_EQ(keeper.TakeDue().has_value(), tenths % 100 == 0) << tenths;
  }
  EXPECT_EQ(take_count_, 5);
  // One that was away for long takes one, and the next ten seconds later.
  Pass(absl::Minutes(5));
  EXPECT_TRUE(keeper.TakeDue().has_value());
  Pass(absl::Milliseconds(9'999));
  EXPECT_FALSE(keeper.TakeDue().has_value());
}

// 500 µs in a second is as fast as the kernel steers.
TEST_F(AnchorKeeperTest, AgentRule12_AWallClockThatIsSteeredOrSetIsFollowed) {
  steered_us_ = 500;
  AnchorKeeper keeper = Keeper();
  ClockAnchor anchor = *keeper.TakeDue();
  std::int64_t apart_us_max = 0;
  for (int visit = 0; visit < 1000; ++visit) {
    Pass(absl::Milliseconds(100));
    if (const auto due = keeper.TakeDue()) anchor = *due;
    const std::int64_t apart_us = wall_us_ - anchor.ToUnixUs(Now().monotonic_ns);
    apart_us_max = std::max(apart_us_max, std::abs(apart_us));
  }
  EXPECT_LE(apart_us_max, 10 * 500);
  EXPECT_GT(apart_us_max, 0) << "it was not steered";
  wall_us_ += 3'600'000'000;
  Pass(AnchorKeeper::kInterval);
  EXPECT_EQ(keeper.TakeDue()->ToUnixUs(Now().monotonic_ns), wall_us_);
}

TEST_F(AnchorKeeperTest, AgentRule12_OfAnEarlierBootTheRecordersOwnPairHoldsForEver) {
  AnchorKeeper keeper = Keeper(ClockAnchor{1'234'000'000, 5'000});
  EXPECT_EQ(keeper.TakeDue()->ToUnixUs(7'000), 1'234'000'002);
  Pass(absl::Hours(1));
  EXPECT_FALSE(keeper.TakeDue().has_value());
  EXPECT_EQ(take_count_, 0) << "this boot's clocks say nothing of it";
}

}  // namespace
}  // namespace stepwell::agent
