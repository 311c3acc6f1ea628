#include "client/agent/sensors/watched.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "absl/synchronization/notification.h"

namespace stepwell::agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);

struct Gate {
  absl::Notification entered;
  absl::Notification open;
  absl::Notification passed;
  std::atomic<int> calls{0};
};

TEST(WatchedTest, AnswersWhatItIsAsked) {
  Watched<int, int> twice("twice", [](const int& question) { return 2 * question; });
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(twice.Ask(i));
    EXPECT_EQ(twice.Await(kLong), 2 * i);
  }
  EXPECT_EQ(twice.Await(absl::ZeroDuration()), std::nullopt);
}

TEST(WatchedTest, OneHangingCallIsAllThereIsAndItsLateAnswerIsThereForWhoTakesIt) {
  const auto gate = std::make_shared<Gate>();
  Watched<int, int> slow("slow", [gate](const int& question) {
    ++gate->calls;
    if (question == 1) {
      gate->entered.Notify();
      gate->open.WaitForNotification();
    }
    return question;
  });
  ASSERT_TRUE(slow.Ask(1));
  ASSERT_TRUE(gate->entered.WaitForNotificationWithTimeout(kLong));
  EXPECT_EQ(slow.Await(absl::Milliseconds(5)), std::nullopt);
  EXPECT_FALSE(slow.Ask(2));
  EXPECT_FALSE(slow.Ask(3));
  EXPECT_EQ(gate->calls, 1);
  gate->open.Notify();
  EXPECT_EQ(slow.Await(kLong), 1);
  EXPECT_EQ(slow.Await(kLong), std::nullopt) << "taken twice";
  ASSERT_TRUE(slow.Ask(4));
  EXPECT_EQ(slow.Await(kLong), 4);
}

TEST(WatchedTest, AThreadThatHangsAtTheEndIsLeftBehindWithWhatItNeeds) {
  const auto gate = std::make_shared<Gate>();
  {
    Watched<int, int> hung("hung", [gate](const int& question) {
      gate->entered.Notify();
      gate->open.WaitForNotification();
      gate->passed.Notify();
      return question;
    });
    ASSERT_TRUE(hung.Ask(1));
    ASSERT_TRUE(gate->entered.WaitForNotificationWithTimeout(kLong));
  }
  gate->open.Notify();
  EXPECT_TRUE(gate->passed.WaitForNotificationWithTimeout(kLong));
}

}  // namespace
}  // namespace stepwell::agent
