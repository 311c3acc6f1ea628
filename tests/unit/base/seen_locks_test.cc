// What ThreadSanitizer makes of abseil's locks (cmake/tsan/absl_locks.cc): it sees those that are held
// and misses those that are not. In the preset tsan only; any report ends the test program.
#ifdef __SANITIZE_THREAD__
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace stepwell {
namespace {

constexpr int kRounds = 300;

// What two threads share: a number and memory from the heap.
struct Shared {
  void Touch() {
    ++count;
    text += "x";
  }
  absl::Mutex mu;
  absl::CondVar changed;
  int count = 0;  // Deliberately without annotation: some of these tests take no lock.
  std::string text;
};

void RunTwice(const std::function<void(int)>& body) {
  std::thread first([&] { body(0); });
  std::thread second([&] { body(1); });
  first.join();
  second.join();
}

// The threads take turns; `touch_in_turn` waits until the count's parity is the thread's number.
int CountOfTurns(const std::function<void(Shared&, const absl::Condition&)>& touch_in_turn) {
  Shared shared;
  RunTwice([&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      const auto my_turn = [&shared, me] { return shared.count % 2 == me; };
      touch_in_turn(shared, absl::Condition(&my_turn));
    }
  });
  return shared.count;
}

TEST(SeenLocksTest, MutexOrdersWriters) {
  Shared shared;
  RunTwice([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      const absl::MutexLock lock(&shared.mu);
      shared.Touch();
    }
  });
  EXPECT_EQ(shared.count, 2 * kRounds);
}

TEST(SeenLocksTest, ReadersAreOrderedWithWriters) {
  Shared shared;
  RunTwice([&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      if (me == 0) {
        const absl::MutexLock lock(&shared.mu);
        shared.Touch();
      } else {
        const absl::ReaderMutexLock lock(&shared.mu);
        EXPECT_EQ(static_cast<int>(shared.text.size()), shared.count);
      }
    }
  });
}

TEST(SeenLocksTest, WaitsOrderAndSoDoTheirConditions) {
  EXPECT_EQ(CountOfTurns([](Shared& shared, const absl::Condition& my_turn) {
              const absl::MutexLock lock(&shared.mu);
              shared.mu.Await(my_turn);
              shared.Touch();
            }),
            2 * kRounds);
  EXPECT_EQ(CountOfTurns([](Shared& shared, const absl::Condition& my_turn) {
              const absl::MutexLock lock(&shared.mu, my_turn);
              shared.Touch();
            }),
            2 * kRounds);
  EXPECT_EQ(CountOfTurns([](Shared& shared, const absl::Condition& my_turn) {
              const absl::MutexLock lock(&shared.mu);
              while (!shared.mu.AwaitWithTimeout(my_turn, absl::Microseconds(50))) {
              }
              shared.Touch();
            }),
            2 * kRounds);
}

TEST(SeenLocksTest, ConditionVariablesOrder) {
  Shared shared;
  RunTwice([&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      const absl::MutexLock lock(&shared.mu);
      while (shared.count % 2 != me) shared.changed.Wait(&shared.mu);
      shared.Touch();
      shared.changed.Signal();
    }
  });
  EXPECT_EQ(shared.count, 2 * kRounds);
}

TEST(SeenLocksTest, NotificationsOrder) {
  for (int round = 0; round < kRounds; ++round) {
    Shared shared;
    absl::Notification done;
    std::thread other([&] {
      shared.Touch();
      done.Notify();
    });
    if (round % 2 == 0) {
      done.WaitForNotification();
    } else {
      while (!done.HasBeenNotified()) std::this_thread::yield();
    }
    shared.Touch();
    other.join();
    EXPECT_EQ(shared.count, 2);
  }
}

// Child processes: their reports are what is wanted.
TEST(SeenLocksDeathTest, MissingLockIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Shared shared;
        RunTwice([&](int) {
          for (int round = 0; round < kRounds; ++round) ++shared.count;
        });
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}

TEST(SeenLocksDeathTest, WriteUnderReadersLockIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Shared shared;
        RunTwice([&](int) {
          for (int round = 0; round < kRounds; ++round) {
            const absl::ReaderMutexLock lock(&shared.mu);
            ++shared.count;
          }
        });
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}

}  // namespace
}  // namespace stepwell
#endif  // __SANITIZE_THREAD__
