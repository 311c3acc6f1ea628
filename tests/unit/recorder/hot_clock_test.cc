#include "client/recorder/src/hot_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "client/recorder/src/clock_keeper.h"

namespace stepwell::recorder {
namespace {

using Reading = HotClock::Reading;

// A nanosecond a count, which no machine's clock has.
constexpr std::uint32_t kRate = 0xffffffff;
constexpr std::uint64_t kThen = 1'000'000'000'000'000'000;

class HotClockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ClockKeeper::IsCounterTheClock()) {
      GTEST_SKIP() << "the kernel's clock is not this processor's counter";
    }
  }
  bool IsTheKernels() {
    const std::uint64_t before_ns = MonotonicNs();
    const std::uint64_t now_ns = clock_.NowNs();
    return before_ns <= now_ns && now_ns <= MonotonicNs();
  }
  HotClock clock_;
};

TEST_F(HotClockTest, ToldNothingItAsksTheKernel) { EXPECT_TRUE(IsTheKernels()); }

TEST_F(HotClockTest, GoesOnFromWhatItWasTold) {
  const std::uint64_t count = HotClock::ReadCounter();
  clock_.Set({count, kThen}, kRate);
  const std::uint64_t now_ns = clock_.NowNs();
  EXPECT_GE(now_ns, kThen);
  EXPECT_LE(now_ns, kThen + (HotClock::ReadCounter() - count));
  const std::uint64_t before = HotClock::ReadCounter();
  const std::uint64_t earlier_ns = clock_.NowNs();
  const std::uint64_t later_ns = clock_.NowNs();
  EXPECT_LE(later_ns - earlier_ns, HotClock::ReadCounter() - before);
  EXPECT_GT(later_ns, earlier_ns);
}

TEST_F(HotClockTest, WhatItWasToldRunsOut) {
  clock_.Set({HotClock::ReadCounter() - (std::uint64_t{1} << 32), kThen}, kRate);
  EXPECT_TRUE(IsTheKernels());
}

TEST_F(HotClockTest, AMomentToComeIsNotBelieved) {
  clock_.Set({HotClock::ReadCounter() + 1'000'000'000'000, kThen}, kRate);
  EXPECT_TRUE(IsTheKernels());
}

TEST_F(HotClockTest, IsTakenBack) {
  clock_.Set({HotClock::ReadCounter(), kThen}, kRate);
  clock_.Set({}, 0);
  EXPECT_FALSE(clock_.is_set());
  EXPECT_TRUE(IsTheKernels());
}

// Of two settings the moment of one with the count of the other would be off by a second.
TEST_F(HotClockTest, IsSetAsAWholeWhileOthersReadIt) {
  const std::uint64_t count = HotClock::ReadCounter();
  constexpr std::uint64_t kApart = 1'000'000'000;
  const auto set = [&](bool is_second) {
    const std::uint64_t more = is_second ? kApart : 0;
    clock_.Set({count - more, kThen - more}, kRate);
  };
  set(false);
  std::atomic<bool> is_done{false};
  std::atomic<std::uint64_t> turn_count{0};
  std::thread setter([&] {
    for (; !is_done; ++turn_count) set(turn_count % 2 == 0);
  });
  // Until both ran at once for long enough; what was told runs out in little more than a second.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  std::uint64_t last_turn = 0;
  for (int i = 0, met = 0; met < 50'000 && std::chrono::steady_clock::now() < deadline; ++i) {
    const std::uint64_t turn = turn_count.load();
    met += turn == last_turn ? 0 : 1;
    last_turn = turn;
    const std::uint64_t now_ns = clock_.NowNs();
    // The kernel's while it is being set.
    if (now_ns < kThen - kApart) continue;
    const std::uint64_t passed = HotClock::ReadCounter() - count;
    if (now_ns < kThen || now_ns > kThen + passed) {
      ADD_FAILURE() << "turn " << i << ": " << now_ns - kThen << " of " << passed;
      break;
    }
  }
  is_done = true;
  setter.join();
}

class ClockKeeperTest : public HotClockTest {
 protected:
  // What is read `ns` later, of a counter that runs at `counts_per_us`.
  Reading After(std::uint64_t ns, std::uint64_t counts_per_us = 3000) {
    at_.ns += ns;
    at_.count += ns * counts_per_us / 1000;
    return at_;
  }
  static constexpr std::uint64_t kRound = 250'000'000;
  Reading at_{1'000'000'000'000, 2'000'000'000'000};
  ClockKeeper keeper_{clock_};
};

TEST_F(ClockKeeperTest, TwoIntervalsThatAgreeAreBelieved) {
  keeper_.LearnFrom(After(kRound));
  EXPECT_FALSE(clock_.is_set());
  keeper_.LearnFrom(After(kRound));
  EXPECT_FALSE(clock_.is_set());
  keeper_.LearnFrom(After(kRound));
  EXPECT_TRUE(clock_.is_set());
}

TEST_F(ClockKeeperTest, AClockThatIsBeingTurnedIsTheKernelsToTell) {
  for (int i = 0; i < 4; ++i) keeper_.LearnFrom(After(kRound));
  ASSERT_TRUE(clock_.is_set());
  at_.ns += 2000;  // 8 ppm
  keeper_.LearnFrom(After(kRound));
  EXPECT_FALSE(clock_.is_set());
  keeper_.LearnFrom(After(kRound));
  EXPECT_FALSE(clock_.is_set()) << "another pace again";
  keeper_.LearnFrom(After(kRound));
  EXPECT_TRUE(clock_.is_set());
}

TEST_F(ClockKeeperTest, LooksThatFollowEachOtherAtOnceTellNothingNew) {
  for (int i = 0; i < 16; ++i) keeper_.LearnFrom(After(kRound / 20));
  EXPECT_FALSE(clock_.is_set());
  for (int i = 0; i < 30; ++i) keeper_.LearnFrom(After(kRound / 20));
  EXPECT_TRUE(clock_.is_set());
}

TEST_F(ClockKeeperTest, WhatCannotBeIsNotBelieved) {
  for (int i = 0; i < 4; ++i) keeper_.LearnFrom(After(kRound));
  ASSERT_TRUE(clock_.is_set());
  keeper_.LearnFrom(std::nullopt);
  EXPECT_TRUE(clock_.is_set()) << "until it runs out";
  at_.count -= 1'000'000'000;
  keeper_.LearnFrom(After(kRound));
  EXPECT_FALSE(clock_.is_set()) << "the counter went back";
  for (int i = 0; i < 4; ++i) keeper_.LearnFrom(After(kRound));
  ASSERT_TRUE(clock_.is_set());
  at_.ns -= 1'000'000'000;
  keeper_.LearnFrom(After(kRound));
  EXPECT_FALSE(clock_.is_set()) << "the clock went back";
  for (int i = 0; i < 4; ++i) keeper_.LearnFrom(After(kRound));
  ASSERT_TRUE(clock_.is_set());
  keeper_.LearnFrom(After(5'000'000'000));
  EXPECT_FALSE(clock_.is_set()) << "nobody looked for seconds";
  for (int i = 0; i < 4; ++i) keeper_.LearnFrom(After(kRound, 100));
  EXPECT_FALSE(clock_.is_set()) << "a counter of 100 MHz";
}

// This machine's, with whatever else runs here: what is read between two reads of the kernel's clock lies
// between them, but for what a setting is off by.
TEST_F(ClockKeeperTest, TellsTheKernelsTime) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!clock_.is_set()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    keeper_.LearnFrom(ClockKeeper::ReadBoth());
  }
  constexpr std::uint64_t kOff = 5'000;
  for (int i = 0; i < 100'000; ++i) {
    keeper_.LearnFrom(ClockKeeper::ReadBoth());
    const std::uint64_t before_ns = MonotonicNs();
    const std::uint64_t now_ns = clock_.NowNs();
    const std::uint64_t after_ns = MonotonicNs();
    ASSERT_GE(now_ns + kOff, before_ns);
    ASSERT_LE(now_ns, after_ns + kOff);
  }
}

TEST(ThreadClockTest, NeverGoesBackButWhereItWasFarAhead) {
  if (!ClockKeeper::IsCounterTheClock()) GTEST_SKIP();
  HotClock clock;
  ThreadClock thread;
  clock.Set({HotClock::ReadCounter(), kThen}, kRate);
  const std::uint64_t first_ns = thread.NowNs(clock);
  EXPECT_GE(first_ns, kThen);
  clock.Set({HotClock::ReadCounter(), first_ns - 900'000}, 1);  // so slow that it stands
  EXPECT_EQ(thread.NowNs(clock), first_ns);
  clock.Set({HotClock::ReadCounter(), first_ns + 5}, 1);
  EXPECT_GE(thread.NowNs(clock), first_ns + 5);
  clock.Set({HotClock::ReadCounter(), first_ns - 2'000'000}, 1);
  EXPECT_LT(thread.NowNs(clock), first_ns);
}

}  // namespace
}  // namespace stepwell::recorder
