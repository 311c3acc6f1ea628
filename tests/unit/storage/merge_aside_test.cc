#include "storage/merge_aside.h"

#include <gtest/gtest.h>

#include "storage/pg_error.h"

namespace stepwell {
namespace {

using Ruling = MergeAside::Ruling;

StretchKey Key(int trial) { return {TrialId{trial}, WriterNo{1}, 1, 20'000}; }

const absl::Status kRefused = PgError("23514", "a check");
const absl::Status kLost = PgError("", "the connection is gone");

TEST(MergeAsideTest, WhatIsRefusedForWhatItIsWaitsAtOnce) {
  const SteadyTime now = SteadyTime::Now();
  for (const char* state :
       {"22003", "23514", "54000", "57014", "58030", "P0001", "XX000", "XX001"}) {
    MergeAside aside;
    EXPECT_EQ(aside.Failed(Key(1), PgError(state, "no"), now), Ruling::kPutAside) << state;
    EXPECT_EQ(aside.Held(now), std::vector<StretchKey>{Key(1)});
    EXPECT_EQ(aside.Held(now + MergeAside::kRefused), std::vector<StretchKey>{});
  }
}

TEST(MergeAsideTest, WhatMayPassWaitsWhereItComesBack) {
  const SteadyTime now = SteadyTime::Now();
  for (const char* state : {"", "08006", "40P01", "42P01", "53100", "55P03", "57P01"}) {
    MergeAside aside;
    EXPECT_EQ(aside.Failed(Key(1), PgError(state, "no"), now), Ruling::kTryAgain) << state;
    EXPECT_EQ(aside.Failed(Key(2), PgError(state, "no"), now), Ruling::kTryAgain) << state;
    EXPECT_EQ(aside.Held(now), std::vector<StretchKey>{});
    EXPECT_EQ(aside.Failed(Key(2), PgError(state, "no"), now), Ruling::kPutAside) << state;
    EXPECT_EQ(aside.Held(now), std::vector<StretchKey>{Key(2)});
  }
}

TEST(MergeAsideTest, AMergeBetweenTwoFailuresMakesThemTwo) {
  const SteadyTime now = SteadyTime::Now();
  MergeAside aside;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(aside.Failed(Key(1), kLost, now), Ruling::kTryAgain);
    aside.Succeeded();
  }
  EXPECT_TRUE(aside.Held(now).empty());
}

TEST(MergeAsideTest, WhatAnotherMasterOwnsIsNoFailureOfTheStretch) {
  const SteadyTime now = SteadyTime::Now();
  MergeAside aside;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(aside.Failed(Key(1), absl::AbortedError("another owner"), now), Ruling::kTryAgain);
  }
  EXPECT_TRUE(aside.Held(now).empty());
}

TEST(MergeAsideTest, WhereAllIsRefusedItRests) {
  const SteadyTime now = SteadyTime::Now();
  MergeAside aside;
  int rested = 0;
  for (int i = 0; i < 5 * MergeAside::kInARowMax; ++i) {
    rested += aside.Failed(Key(i), kRefused, now) == Ruling::kTryAgain ? 1 : 0;
  }
  EXPECT_EQ(rested, 5);
  EXPECT_EQ(std::ssize(aside.Held(now)), 5 * MergeAside::kInARowMax) << "these wait all the same";
}

TEST(MergeAsideTest, IsBounded) {
  const SteadyTime now = SteadyTime::Now();
  MergeAside aside;
  aside.Damaged(Key(0), now);
  for (int i = 1; i <= static_cast<int>(MergeAside::kCountMax); ++i) {
    aside.Failed(Key(i), kRefused, now + absl::Milliseconds(i));
  }
  const std::vector<StretchKey> held = aside.Held(now + absl::Minutes(1));
  EXPECT_EQ(held.size(), MergeAside::kCountMax);
  EXPECT_EQ(held.front(), Key(0));
  EXPECT_EQ(held[1], Key(2)) << "what would have waited the shortest went";
}

}  // namespace
}  // namespace stepwell
