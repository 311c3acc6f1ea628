// A wall clock that is set while a thread waits. The real one is everybody's: here this program's view of
// it is ahead of the kernel's, by which abseil's own wait would last longer by as much.
#include "base/monotonic_waits.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace {
std::atomic<long> ahead_seconds{0};
}  // namespace

// Takes the place of libc's for all of this program; abseil makes its timeouts by it.
extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec + ahead_seconds, now.tv_nsec / 1000};
  return 0;
}

namespace stepwell {
namespace {

double MonotonicSeconds() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class MonotonicWaitsTest : public ::testing::TestWithParam<long> {
 protected:
  MonotonicWaitsTest() {
    UseMonotonicWaits();
    ahead_seconds = GetParam();
  }
  ~MonotonicWaitsTest() override { ahead_seconds = 0; }
  // How long a wait of 50 ms takes; one that would last an hour is given up on with all it has.
  static double SecondsOf(const std::function<void(absl::Duration)>& wait) {
    const auto seconds = std::make_shared<std::atomic<double>>(-1);
    std::thread waiter([seconds, wait] {
      const double begun = MonotonicSeconds();
      wait(absl::Milliseconds(50));
      *seconds = MonotonicSeconds() - begun;
    });
    const double deadline = MonotonicSeconds() + 20;
    while (*seconds < 0 && MonotonicSeconds() < deadline) std::this_thread::yield();
    if (*seconds < 0) {
      waiter.detach();
    } else {
      waiter.join();
    }
    return *seconds;
  }
};

TEST_P(MonotonicWaitsTest, LastAsLongAsWasAsked) {
  struct Shared {
    absl::Mutex mu;
    absl::CondVar changed;
    absl::Notification never;
  };
  const auto shared = std::make_shared<Shared>();
  const std::vector<std::pair<const char*, std::function<void(absl::Duration)>>> waits = {
      {"a condition",
       [shared](absl::Duration patience) {
         absl::MutexLock lock(&shared->mu);
         bool holds = false;
         EXPECT_FALSE(shared->mu.AwaitWithTimeout(absl::Condition(&holds), patience));
       }},
      {"a condition variable",
       [shared](absl::Duration patience) {
         absl::MutexLock lock(&shared->mu);
         EXPECT_TRUE(shared->changed.WaitWithTimeout(&shared->mu, patience));
       }},
      {"a notification",
       [shared](absl::Duration patience) {
         EXPECT_FALSE(shared->never.WaitForNotificationWithTimeout(patience));
       }},
  };
  for (const auto& [name, wait] : waits) {
    const double seconds = SecondsOf(wait);
    EXPECT_GE(seconds, 0.05) << name;
    EXPECT_LT(seconds, 10) << name;
  }
}

// As where a group of commits has lingered long enough.
TEST_P(MonotonicWaitsTest, OneThatHasPassedAsItBeginsIsOver) {
  const auto mu = std::make_shared<absl::Mutex>();
  for (const absl::Duration left : {absl::ZeroDuration(), absl::Nanoseconds(1)}) {
    const double seconds = SecondsOf([mu, left](absl::Duration) {
      absl::MutexLock lock(mu.get());
      bool holds = false;
      EXPECT_FALSE(mu->AwaitWithTimeout(absl::Condition(&holds), left));
    });
    EXPECT_GE(seconds, 0) << left;
    EXPECT_LT(seconds, 10) << left;
  }
}

// Which nobody makes (a layout rule): it may end early while absl::Now has not seen that the clock was set, never late.
TEST_P(MonotonicWaitsTest, ADeadlineByAbslNowIsNotStretched) {
  const auto mu = std::make_shared<absl::Mutex>();
  const double seconds = SecondsOf([mu](absl::Duration patience) {
    absl::MutexLock lock(mu.get());
    bool holds = false;
    EXPECT_FALSE(mu->AwaitWithDeadline(absl::Condition(&holds), absl::Now() + patience));
  });
  EXPECT_GE(seconds, 0);
  EXPECT_LT(seconds, 10);
}

INSTANTIATE_TEST_SUITE_P(Clocks, MonotonicWaitsTest, ::testing::Values(0L, 3600L, -3600L));

// What wakes a thread is not lost, whoever is first.
TEST(MonotonicWaitsPostTest, EachPostIsSeen) {
  UseMonotonicWaits();
  absl::Mutex mu;
  int turn = 0;
  constexpr int kTurns = 20'000;
  const auto play = [&](int mine) {
    for (int i = 0; i < kTurns; ++i) {
      absl::MutexLock lock(&mu);
      const auto is_mine = [&] { return turn % 2 == mine; };
      // With a time limit and without.
      if (i % 2 == 0) {
        mu.Await(absl::Condition(&is_mine));
      } else {
        ASSERT_TRUE(mu.AwaitWithTimeout(absl::Condition(&is_mine), absl::Seconds(60)));
      }
      ++turn;
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, 2 * kTurns);
}

}  // namespace
}  // namespace stepwell
