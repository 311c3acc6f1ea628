#include "client/recorder/src/start_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepwell::recorder {
namespace {

constexpr std::uint64_t kSecond = StartPace::kSecondNs;
constexpr std::uint64_t kMillisecond = kSecond / 1000;
constexpr std::uint64_t kBegin = 100 * kSecond;

TEST(StartPaceTest, StartsOneAtOnceWhereThereIsNone) {
  StartPace pace;
  EXPECT_TRUE(pace.IsDue(/*is_served=*/false, kBegin));
  pace.Launched(kBegin);
  EXPECT_TRUE(pace.is_launching());
  EXPECT_FALSE(pace.IsDue(false, kBegin + 20 * kSecond)) << "what was launched still runs";
  EXPECT_EQ(pace.failed_since_ns(), 0u);
}

TEST(StartPaceTest, StartsNoneWhereOneServes) {
  StartPace pace;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(pace.IsDue(true, kBegin + i * kSecond));
  EXPECT_EQ(pace.failed_since_ns(), 0u);
}

TEST(StartPaceTest, AgentRule08_ADeadAgentIsReplacedAtOnce) {
  StartPace pace;
  EXPECT_FALSE(pace.IsDue(true, kBegin));
  EXPECT_TRUE(pace.IsDue(false, kBegin + 250 * kMillisecond));
}

// An agent that dies whenever it comes is started once a second, not four times.
TEST(StartPaceTest, AgentsThatDieAreReplacedOnceASecond) {
  StartPace pace;
  std::vector<std::uint64_t> starts;
  bool is_served = false;
  for (std::uint64_t now = kBegin; now < kBegin + 10 * kSecond; now += 50 * kMillisecond) {
    if (pace.IsDue(is_served, now)) {
      starts.push_back(now);
      pace.Launched(now);
      pace.Ended(now);
      is_served = true;
    } else {
      is_served = false;
    }
  }
  ASSERT_EQ(starts.size(), 10u);
  for (std::size_t i = 1; i < starts.size(); ++i) EXPECT_EQ(starts[i] - starts[i - 1], kSecond);
}

TEST(StartPaceTest, AgentRule08_FailuresAreTriedEverMoreRarely) {
  StartPace pace;
  std::uint64_t now = kBegin;
  std::vector<std::uint64_t> seconds;
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(pace.IsDue(false, now));
    pace.Failed(now);
    EXPECT_EQ(pace.failed_since_ns(), kBegin) << "the first counts";
    const std::uint64_t failed = now;
    while (!pace.IsDue(false, now)) now += kSecond / 4;
    seconds.push_back((now - failed) / kSecond);
  }
  EXPECT_EQ(seconds, (std::vector<std::uint64_t>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
  // Somebody else's agent was seen: all is well again.
  EXPECT_FALSE(pace.IsDue(true, now));
  EXPECT_EQ(pace.failed_since_ns(), 0u);
  EXPECT_TRUE(pace.IsDue(false, now));
  pace.Failed(now);
  EXPECT_FALSE(pace.IsDue(false, now + kSecond - 1));
  EXPECT_TRUE(pace.IsDue(false, now + kSecond));
}

// It may be slow, or have died before anybody looked.
TEST(StartPaceTest, AgentRule08_AnAgentThatIsNotSeenIsStartedAgainWithinTwoSeconds) {
  StartPace pace;
  ASSERT_TRUE(pace.IsDue(false, kBegin));
  pace.Launched(kBegin);
  pace.Ended(kBegin);
  const std::uint64_t again = kBegin + StartPace::kAppearNs;
  EXPECT_FALSE(pace.IsDue(false, again - 1));
  EXPECT_TRUE(pace.IsDue(false, again));
  EXPECT_EQ(pace.failed_since_ns(), 0u) << "it may still come";
}

TEST(StartPaceTest, AgentRule08_AnAgentThatNeverAppearsIsAFailure) {
  StartPace pace;
  int launch_count = 0;
  std::uint64_t now = kBegin;
  for (; pace.failed_since_ns() == 0 && now < kBegin + 60 * kSecond; now += kSecond / 4) {
    if (!pace.IsDue(false, now)) continue;
    pace.Launched(now);
    pace.Ended(now);
    ++launch_count;
  }
  EXPECT_EQ(launch_count, 4);
  EXPECT_GE(pace.failed_since_ns(), kBegin + StartPace::kAppearMaxNs);
  const std::uint64_t failed = pace.failed_since_ns();
  EXPECT_FALSE(pace.IsDue(false, failed + kSecond - 1));
  EXPECT_TRUE(pace.IsDue(false, failed + kSecond));
  pace.Launched(failed + kSecond);
  EXPECT_EQ(pace.failed_since_ns(), 0u) << "another one is on its way";
  pace.Failed(failed + 2 * kSecond);
  EXPECT_EQ(pace.failed_since_ns(), failed);
}

}  // namespace
}  // namespace stepwell::recorder
