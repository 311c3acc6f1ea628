#include "server/deadline_watch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/time/clock.h"

namespace stepwell {
namespace {

TEST(DeadlineWatchTest, ActsAtTheDeadlineOnce) {
  std::atomic<int> count = 0;
  absl::Notification acted;
  const absl::Time deadline = absl::Now() + absl::Milliseconds(50);
  {
    const DeadlineWatch watch(deadline, [&] {
      ++count;
      acted.Notify();
    });
    ASSERT_TRUE(acted.WaitForNotificationWithTimeout(absl::Seconds(30)));
    EXPECT_GE(absl::Now(), deadline);
  }
  EXPECT_EQ(count, 1);
}

TEST(DeadlineWatchTest, ADeadlineThatHasPassedIsActedOnAtOnce) {
  absl::Notification acted;
  const DeadlineWatch watch(absl::InfinitePast(), [&] { acted.Notify(); });
  EXPECT_TRUE(acted.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST(DeadlineWatchTest, NothingHappensToACallThatEndsInTime) {
  std::atomic<bool> acted = false;
  const absl::Time begin = absl::Now();
  {
    const DeadlineWatch watch(absl::InfiniteFuture(), [&] { acted = true; });
  }
  {
    const DeadlineWatch watch(begin + absl::Hours(1), [&] { acted = true; });
  }
  EXPECT_FALSE(acted);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30)) << "it is not waited for";
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
    const DeadlineWatch watch(absl::InfinitePast(), [&] {
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
