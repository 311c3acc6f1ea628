#include "server/stall_watch.h"

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

namespace stepwell {
namespace {

TEST(StallWatchTest, EndsACallWhoseWriteTakesTooLongAndNoOther) {
  StallWatch watch(absl::Milliseconds(50));
  absl::Notification ended;
  absl::Notification other_ended;
  StallWatch::Call idle(
      watch, [&] { other_ended.Notify(); }, nullptr);
  StallWatch::Call stalled(
      watch, [&] { ended.Notify(); }, nullptr);
  for (int i = 0; i < 1000; ++i) const StallWatch::Write quick(idle);
  {
    const StallWatch::Write write(stalled);
    EXPECT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(20)));
    // Once: a second Notify would abort.
    EXPECT_FALSE(other_ended.WaitForNotificationWithTimeout(absl::Milliseconds(150)));
  }
  EXPECT_FALSE(other_ended.HasBeenNotified());
}

TEST(StallWatchTest, EndsSoonWhoseTokenHasEndedWhileItIsWaitedFor) {
  StallWatch watch(absl::Minutes(2));
  absl::Notification ended;
  absl::Notification other_ended;
  const auto caller = std::make_shared<TokenHolder>();
  StallWatch::Call other(
      watch, [&] { other_ended.Notify(); }, std::make_shared<TokenHolder>());
  StallWatch::Call silent(
      watch, [&] { ended.Notify(); }, caller);
  StallWatch::Call idle(
      watch, [&] { other_ended.Notify(); }, caller);
  const StallWatch::Write of_other(other);
  const StallWatch::Write write(silent);
  EXPECT_FALSE(ended.WaitForNotificationWithTimeout(absl::Seconds(1.6))) << "its token lives";
  caller->has_ended = true;
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(4)));
  EXPECT_FALSE(other_ended.HasBeenNotified());
}

}  // namespace
}  // namespace stepwell
