#include "server/deadline_watch.h"
#include "base/steady_time.h"

#include <gtest/gtest.h>

#include <atomic>

namespace stepwell {
namespace {

TEST(DeadlineWatchTest, ActsAtTheDeadlineOnce) {
  std::atomic<int> count = 0;
  absl::Notification acted;
  const SteadyTime deadline = SteadyTime::Now() + absl::Milliseconds(50);
  {
    const DeadlineWatch watch(deadline, [&] {
      ++count;
      acted.Notify();
    });
    ASSERT_TRUE(acted.WaitForNotificationWithTimeout(absl::Seconds(30)));
    // Abseil counts a wait from a whole microsecond.
    EXPECT_GE(SteadyTime::Now(), deadline - absl::Milliseconds(1));
  }
  EXPECT_EQ(count, 1);
}

TEST(DeadlineWatchTest, ADeadlineThatHasPassedIsActedOnAtOnce) {
  absl::Notification acted;
  const DeadlineWatch watch(SteadyTime::InfinitePast(), [&] { acted.Notify(); });
  EXPECT_TRUE(acted.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST(DeadlineWatchTest, NothingHappensToACallThatEndsInTime) {
  std::atomic<bool> acted = false;
  const SteadyTime begin = SteadyTime::Now();
  {
    const DeadlineWatch watch(SteadyTime::InfiniteFuture(), [&] { acted = true; });
  }
  {
    const DeadlineWatch watch(begin + absl::Hours(1), [&] { acted = true; });
  }
  EXPECT_FALSE(acted);
  EXPECT_LT(SteadyTime::Now() - begin, absl::Seconds(30)) << "it is not waited for";
}

TEST(DeadlineWatchTest, AnActionThatHasBegunIsWaitedFor) {
  absl::Notification begun;
  absl::Notification may_end;
  std::atomic<bool> ended = false;
  Worker releaser("releaser", [&] {
    begun.WaitForNotification();
    may_end.Notify();
  });
  {
    const DeadlineWatch watch(SteadyTime::InfinitePast(), [&] {
      begun.Notify();
      may_end.WaitForNotification();
      ended = true;
    });
    begun.WaitForNotification();
  }
  EXPECT_TRUE(ended) << "what it used may be gone";
}

}  // namespace
}  // namespace stepwell
