// Invariant: what is held stays within the room, but for one that goes alone; who waits goes on in the order of coming.
#include "server/memory_room.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "base/worker.h"

namespace stepwell {
namespace {

bool Always() { return true; }

// Asks until it is so; false after ten seconds.
bool Eventually(const std::function<bool()>& is_so) {
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(10);
  while (!is_so()) {
    if (deadline.HasPassed()) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

TEST(MemoryRoomTest, PlacesTakeOfItAndGiveBack) {
  MemoryRoom room(100);
  auto first = room.TryTake(60);
  ASSERT_TRUE(first);
  EXPECT_FALSE(room.TryTake(41));
  auto second = room.Take(40, Always);
  EXPECT_EQ(room.bytes(), 100);
  first.reset();
  EXPECT_EQ(room.bytes(), 40);
  *second = {};
  EXPECT_EQ(room.bytes(), 0);
  MemoryRoom::Place moved = *room.TryTake(7);
  MemoryRoom::Place to = std::move(moved);
  EXPECT_EQ(to.bytes(), 7);
  EXPECT_EQ(room.bytes(), 7);
}

TEST(MemoryRoomTest, OneThatIsLargerThanAllGoesAlone) {
  MemoryRoom room(100);
  const auto large = room.Take(1000, Always);
  EXPECT_FALSE(room.TryTake(1));
}

TEST(MemoryRoomTest, WhatIsThereCountsWhetherThereIsRoomOrNot) {
  MemoryRoom room(100);
  const MemoryRoom::Place there = room.Count(300);
  EXPECT_EQ(room.bytes(), 300);
  EXPECT_FALSE(room.TryTake(1));
}

TEST(MemoryRoomTest, WhileItIsTightOneAtATimeIsLetIn) {
  MemoryRoom room(100);
  room.SetTight(true);
  auto only = room.TryTake(10);
  ASSERT_TRUE(only);
  EXPECT_FALSE(room.TryTake(10));
  only.reset();
  EXPECT_TRUE(room.TryTake(10));
  room.SetTight(false);
  const auto first = room.TryTake(10);
  EXPECT_TRUE(room.TryTake(10));
}

TEST(MemoryRoomTest, APlaceGrowsWhereThereIsRoomOrNobodyElse) {
  MemoryRoom room(100);
  MemoryRoom::Place first;
  ASSERT_TRUE(room.TryResize(first, 300)) << "alone";
  MemoryRoom::Place second;
  EXPECT_FALSE(room.TryResize(second, 1));
  EXPECT_EQ(room.bytes(), 300);
  EXPECT_TRUE(room.TryResize(first, 60));
  EXPECT_TRUE(room.TryResize(second, 40));
  EXPECT_FALSE(room.TryResize(first, 61));
  EXPECT_EQ(first.bytes(), 60) << "as it was";
  room.Resize(first, 90);
  EXPECT_EQ(room.bytes(), 130) << "it is there";
  room.SetTight(true);
  EXPECT_FALSE(room.TryResize(second, 41));
  EXPECT_TRUE(room.TryResize(second, 10)) << "less is always possible";
  first = {};
  EXPECT_EQ(room.bytes(), 10);
  EXPECT_TRUE(room.TryResize(second, 500)) << "alone again";
  second = {};
  EXPECT_EQ(room.bytes(), 0);
}

// A small one that comes later does not pass a large one by.
TEST(MemoryRoomTest, WhoWaitsHasItsTurnInTheOrderOfComing) {
  MemoryRoom room(100);
  auto held = room.TryTake(50);
  std::atomic<bool> large_has = false;
  absl::Notification let_go;
  Worker large("large", [&] {
    const auto place = room.Take(80, Always);
    large_has = true;
    let_go.WaitForNotification();
  });
  ASSERT_TRUE(Eventually([&] { return !room.TryTake(1); }));
  EXPECT_FALSE(large_has);
  held.reset();
  ASSERT_TRUE(Eventually([&] { return large_has.load(); }));
  EXPECT_EQ(room.bytes(), 80);
  EXPECT_TRUE(room.TryTake(20)) << "nobody waits any more";
  let_go.Notify();
  large.Join();
}

TEST(MemoryRoomTest, WhoDoesNotWantItAnyMoreHoldsUpNobody) {
  MemoryRoom room(100);
  auto held = room.TryTake(50);
  std::atomic<bool> goes_on = true;
  std::atomic<bool> ended = false;
  Worker large("large", [&] {
    EXPECT_FALSE(room.Take(80, [&] { return goes_on.load(); }));
    ended = true;
  });
  ASSERT_TRUE(Eventually([&] { return !room.TryTake(1); }));
  goes_on = false;
  ASSERT_TRUE(Eventually([&] { return ended.load(); }));
  EXPECT_TRUE(room.TryTake(1));
  large.Join();
}

TEST(MemoryRoomTest, ManyAtOnceStayWithinIt) {
  MemoryRoom room(100);
  std::atomic<std::int64_t> held = 0;
  std::atomic<bool> beyond = false;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < 8; ++i) {
    workers.push_back(std::make_unique<Worker>("taker", [&, bytes = 13 * (i + 1)] {
      for (int round = 0; round < 200; ++round) {
        const auto place = room.Take(bytes, Always);
        const std::int64_t now = held += bytes;
        beyond = beyond || (now > 100 && now != bytes);
        held -= bytes;
      }
    }));
  }
  for (const auto& worker : workers) worker->Join();
  EXPECT_FALSE(beyond);
  EXPECT_EQ(room.bytes(), 0);
}

}  // namespace
}  // namespace stepwell
