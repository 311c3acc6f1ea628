#include "client/cli/stoppable.h"

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

namespace stepwell::cli {
namespace {

TEST(StoppableTest, EndsByItself) {
  const HeldSignals signals;
  bool ran = false;
  EXPECT_FALSE(RunStoppable(
      signals, "test", [&] { ran = true; }, [] { FAIL(); }, [] {}));
  EXPECT_TRUE(ran);
}

TEST(StoppableTest, ASignalStopsIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const HeldSignals signals;
    absl::Notification stopped;
    bool sent = false;
    EXPECT_TRUE(RunStoppable(
        signals, "test", [&] { stopped.WaitForNotification(); }, [&] { stopped.Notify(); },
        [&] {
          // To this thread alone: those of other tests do not hold signals.
          if (!sent) raise(signal);
          sent = true;
        }));
  }
}

TEST(StoppableTest, GivesSignalsBack) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  { const HeldSignals signals; }
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

}  // namespace
}  // namespace stepwell::cli
