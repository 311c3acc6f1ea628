#include "server/rate_allowance.h"

#include <gtest/gtest.h>

#include <random>

#include "base/clock.h"
#include "server/rate_table.h"

namespace stepwell {
namespace {

const SteadyTime kStart = SteadyTime::Now(FakeClock());

TEST(RateAllowanceTest, GivesItsBurstAtOnceAndThenItsRate) {
  RateAllowance allowance({.per_second = 2, .burst = 4}, kStart);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(allowance.TryTake(1, kStart), absl::ZeroDuration());
  const absl::Duration wait = allowance.TryTake(1, kStart);
  EXPECT_GT(wait, absl::ZeroDuration());
  EXPECT_EQ(allowance.TryTake(1, kStart + wait), absl::ZeroDuration());
  // It owes nearly one, which is half a second.
  EXPECT_NEAR(absl::ToDoubleSeconds(allowance.TryTake(1, kStart + wait)), 0.5, 0.01);
}

TEST(RateAllowanceTest, AUseLargerThanTheBurstIsTakenAndWaitedForByTheNext) {
  RateAllowance allowance({.per_second = 10, .burst = 100}, kStart);
  EXPECT_EQ(allowance.TryTake(1100, kStart), absl::ZeroDuration());
  EXPECT_NEAR(absl::ToDoubleSeconds(allowance.TryTake(1, kStart)), 100, 0.1);
  EXPECT_GT(allowance.TryTake(1, kStart + absl::Seconds(99)), absl::ZeroDuration());
  EXPECT_EQ(allowance.TryTake(1, kStart + absl::Seconds(101)), absl::ZeroDuration());
}

TEST(RateAllowanceTest, WhatWasSpentUnseenIsOwedForAMinuteAtMost) {
  RateAllowance allowance({.per_second = 10, .burst = 100}, kStart);
  allowance.Spend(1e9, kStart);
  EXPECT_NEAR(absl::ToDoubleSeconds(allowance.TryTake(1, kStart)), 60, 0.1);
  // What was owed before does not shrink by it.
  RateAllowance deep({.per_second = 10, .burst = 100}, kStart);
  EXPECT_EQ(deep.TryTake(10'000, kStart), absl::ZeroDuration());
  deep.Spend(5, kStart);
  EXPECT_DOUBLE_EQ(deep.left(kStart), -9900);
}

TEST(RateAllowanceTest, WhoCanWaitLeavesSomethingToThoseThatCannot) {
  const struct {
    const char* name;
    double used;
    double kept;
    double wait;  // seconds
  } rows[] = {
      {"all is there", 0, 10, 0},           {"more than what is kept", 85, 10, 0},
      {"just what is kept", 90, 10, 0.001}, {"less", 95, 10, 0.501},
      {"nothing", 100, 10, 1.001},          {"less than that", 300, 10, 21.001},
      {"nothing is kept", 99, 0, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    RateAllowance allowance({.per_second = 10, .burst = 100}, kStart);
    EXPECT_EQ(allowance.TryTake(row.used, kStart), absl::ZeroDuration());
    const absl::Duration wait = allowance.TryTake(50, kStart, row.kept);
    EXPECT_NEAR(absl::ToDoubleSeconds(wait), row.wait, 1e-6);
    EXPECT_DOUBLE_EQ(allowance.left(kStart), 100 - row.used - (row.wait == 0 ? 50 : 0));
    EXPECT_EQ(allowance.TryTake(50, kStart + wait, row.kept) == absl::ZeroDuration(),
              row.wait > 0 || row.used + 50 < 100 - row.kept);
  }
}

TEST(RateAllowanceTest, NeitherTimeThatGoesBackNorAGiftMakesMoreThanTheBurst) {
  RateAllowance allowance({.per_second = 10, .burst = 100}, kStart);
  EXPECT_EQ(allowance.TryTake(30, kStart + absl::Seconds(1)), absl::ZeroDuration());
  EXPECT_DOUBLE_EQ(allowance.left(kStart), 70);
  allowance.GiveBack(1000, kStart + absl::Seconds(1));
  EXPECT_DOUBLE_EQ(allowance.left(kStart + absl::Hours(1)), 100);
  EXPECT_TRUE(allowance.IsFull(kStart + absl::Hours(1)));
}

// Of any uses at any times: never more within a span than the burst, its rate, and one use; and whoever comes again
// when he was told to is let in.
TEST(RateAllowanceTest, HoldsItsPromiseForAnyUses) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 chance(seed);
    const double rate = std::uniform_real_distribution<double>(0.1, 1000)(chance);
    const double burst = rate * std::uniform_real_distribution<double>(0.5, 20)(chance);
    const double largest = burst * std::uniform_real_distribution<double>(0.01, 3)(chance);
    RateAllowance allowance({.per_second = rate, .burst = burst}, kStart);
    SteadyTime now = kStart;
    double used = 0;
    for (int i = 0; i < 300; ++i) {
      const double amount = std::uniform_real_distribution<double>(0, largest)(chance);
      const absl::Duration wait = allowance.TryTake(amount, now);
      if (wait == absl::ZeroDuration()) {
        used += amount;
      } else if (chance() % 2 == 0) {
        now += wait;
        ASSERT_EQ(allowance.TryTake(amount, now), absl::ZeroDuration());
        used += amount;
      }
      ASSERT_LE(used, burst + rate * absl::ToDoubleSeconds(now - kStart) + largest + 1e-6);
      if (chance() % 3 == 0) now += absl::Milliseconds(chance() % 500);
    }
  }
}

TEST(RateTableTest, KeysAreApartAndItsMemoryIsBounded) {
  RateTable table({.per_second = 1, .burst = 2}, 100);
  EXPECT_EQ(table.TryTake("a", 2, kStart), absl::ZeroDuration());
  EXPECT_GT(table.TryTake("a", 1, kStart), absl::ZeroDuration());
  EXPECT_EQ(table.TryTake("b", 1, kStart), absl::ZeroDuration());
  EXPECT_EQ(table.Wait("never seen", kStart), absl::ZeroDuration());
  EXPECT_EQ(table.key_count(), 2u);
  for (int i = 0; i < 10'000; ++i) table.TryTake("key " + std::to_string(i), 5, kStart);
  EXPECT_LE(table.key_count(), 101u) << "and the one of those without a place";
  EXPECT_GT(table.TryTake("a", 1, kStart), absl::ZeroDuration())
      << "nobody's debts are forgotten for newcomers";
  EXPECT_GT(table.TryTake("yet another", 1, kStart), absl::ZeroDuration());
  EXPECT_GT(table.Wait("yet another", kStart), absl::ZeroDuration());
  // Once they owe nothing more they make room.
  const SteadyTime later = kStart + absl::Hours(10);
  EXPECT_EQ(table.TryTake("yet another", 1, later), absl::ZeroDuration());
  EXPECT_LE(table.key_count(), 2u);
}

}  // namespace
}  // namespace stepwell
