#include "server/stall_watch.h"

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

namespace stepwell {
namespace {

TEST(StallWatchTest, EndsACallWhoseWriteTakesTooLongAndNoOther) {
  StallWatch watch(absl::Milliseconds(50));
  absl::Notification ended;
  absl::Notification other_ended;
  StallWatch::Call idle(watch, [&] { other_ended.Notify(); });
  StallWatch::Call stalled(watch, [&] { ended.Notify(); });
  for (int i = 0; i < 1000; ++i) const StallWatch::Write quick(idle);
  {
    const StallWatch::Write write(stalled);
    EXPECT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(20)));
    // Once: a second Notify would abort.
    EXPECT_FALSE(other_ended.WaitForNotificationWithTimeout(absl::Milliseconds(150)));
  }
  EXPECT_FALSE(other_ended.HasBeenNotified());
}

}  // namespace
}  // namespace stepwell
