#include "storage/call_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace stepwell {
namespace {

struct Call {
  int number = 0;
  int answered = 0;
};
using Groups = CallGroups<int, Call>;

// What was done, in order; several keys at one time.
struct Done {
  absl::Mutex mu;
  std::vector<std::vector<int>> groups ABSL_GUARDED_BY(mu);

  void Add(const Groups::Group& group) {
    std::vector<int> numbers;
    for (Call* call : group) {
      ++call->answered;
      numbers.push_back(call->number);
    }
    absl::MutexLock lock(&mu);
    groups.push_back(std::move(numbers));
  }
};

// Calls 1, 2, ... of one key, each of which waits in its place before the next one comes; call 0 is under way
// meanwhile.
class CallGroupsTest : public ::testing::Test {
 protected:
  void RunBehindOne(Groups& groups, int count) {
    std::vector<Call> calls(static_cast<std::size_t>(count) + 1);
    std::vector<std::thread> threads;
    absl::Notification under_way;
    absl::Notification all_wait;
    const auto run = [&](Call& call) {
      groups.Do(7, call, [&](const Groups::Take& take) {
        const Groups::Group group = take();
        if (call.number == 0) {
          under_way.Notify();
          all_wait.WaitForNotification();
        }
        done_.Add(group);
      });
    };
    for (int i = 0; i <= count; ++i) {
      calls[static_cast<std::size_t>(i)].number = i;
      threads.emplace_back(run, std::ref(calls[static_cast<std::size_t>(i)]));
      under_way.WaitForNotification();
      while (groups.waiting_count() < static_cast<std::size_t>(i)) std::this_thread::yield();
    }
    all_wait.Notify();
    for (std::thread& thread : threads) thread.join();
    for (const Call& call : calls) EXPECT_EQ(call.answered, 1) << call.number;
    EXPECT_EQ(groups.waiting_count(), 0u);
  }

  Done done_;
};

using Numbers = std::vector<std::vector<int>>;

TEST_F(CallGroupsTest, OneThatComesAloneIsDoneByItself) {
  Groups groups({.count_max = 10});
  RunBehindOne(groups, 0);
  EXPECT_EQ(done_.groups, (Numbers{{0}}));
}

TEST_F(CallGroupsTest, WhatComesWhileOneIsUnderWayIsDoneTogetherInOrder) {
  Groups groups({.count_max = 10});
  RunBehindOne(groups, 5);
  EXPECT_EQ(done_.groups, (Numbers{{0}, {1, 2, 3, 4, 5}}));
}

TEST_F(CallGroupsTest, AGroupIsBounded) {
  Groups groups({.count_max = 2});
  RunBehindOne(groups, 5);
  EXPECT_EQ(done_.groups, (Numbers{{0}, {1, 2}, {3, 4}, {5}}));
}

TEST_F(CallGroupsTest, WhoMayNotGoAlongStaysInItsPlace) {
  Groups groups({.count_max = 10, .fits = [](std::span<Call* const> group, const Call& next) {
                   return group.front()->number % 2 == next.number % 2;
                 }});
  RunBehindOne(groups, 5);
  EXPECT_EQ(done_.groups, (Numbers{{0}, {1, 3, 5}, {2, 4}}));
}

TEST_F(CallGroupsTest, WhoComesWhileItGetsReadyGoesAlong) {
  Groups groups({.count_max = 10});
  Call first{.number = 1}, second{.number = 2};
  std::thread other;
  groups.Do(7, first, [&](const Groups::Take& take) {
    other = std::thread(
        [&] { groups.Do(7, second, [&](const Groups::Take& own) { done_.Add(own()); }); });
    while (groups.waiting_count() < 2) std::this_thread::yield();
    done_.Add(take());
  });
  other.join();
  EXPECT_EQ(done_.groups, (Numbers{{1, 2}}));
}

TEST_F(CallGroupsTest, KeysDoNotWaitForEachOther) {
  Groups groups({.count_max = 10});
  Call first{.number = 1}, second{.number = 2};
  groups.Do(7, first, [&](const Groups::Take& take) {
    groups.Do(8, second, [&](const Groups::Take& own) { done_.Add(own()); });
    done_.Add(take());
  });
  EXPECT_EQ(done_.groups, (Numbers{{2}, {1}}));
}

TEST_F(CallGroupsTest, OfManyThreadsEachIsDoneOnce) {
  constexpr int kThreads = 16;
  constexpr int kRounds = 500;
  Groups groups({.count_max = 5});
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        Call call{.number = i};
        groups.Do(round % 3, call, [&](const Groups::Take& take) { done_.Add(take()); });
        EXPECT_EQ(call.answered, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t count = 0;
  for (const auto& group : done_.groups) {
    EXPECT_LE(group.size(), 5u);
    count += group.size();
  }
  EXPECT_EQ(count, std::size_t{kThreads} * kRounds);
}

}  // namespace
}  // namespace stepwell
