#include "client/agent/look_hurry.h"

#include <gtest/gtest.h>

namespace stepwell::agent {
namespace {

using Seen = LookHurry::Seen;
constexpr absl::Duration kStart = absl::Hours(1);
constexpr absl::Duration kMs = absl::Milliseconds(1);

// How often a root is looked at from `begin` to `end` while a name arrives each 10 ms.
int LooksUnderNoise(LookHurry& hurry, absl::Duration begin, absl::Duration end) {
  int count = 0;
  for (absl::Duration now = begin; now < end; now += kMs) {
    if ((now - begin) % (10 * kMs) == absl::ZeroDuration()) hurry.OnArrival(now);
    if (!hurry.IsDue(now)) continue;
    hurry.Looked(Seen::kNothing, now);
    ++count;
  }
  return count;
}

TEST(LookHurryTest, WhatArrivesIsLookedForAtOnceThenOften) {
  LookHurry hurry;
  EXPECT_FALSE(hurry.IsDue(kStart));
  EXPECT_EQ(hurry.NextLook(kStart), absl::InfiniteDuration());
  hurry.OnArrival(kStart);
  EXPECT_EQ(hurry.NextLook(kStart), kStart);
  EXPECT_TRUE(hurry.IsDue(kStart));
  hurry.Looked(Seen::kNothing, kStart);
  EXPECT_FALSE(hurry.IsDue(kStart + 4 * kMs));
  EXPECT_EQ(hurry.NextLook(kStart), kStart + LookHurry::kStep);
  EXPECT_TRUE(hurry.IsDue(kStart + LookHurry::kStep));
  EXPECT_FALSE(hurry.IsDue(kStart + LookHurry::kLength));
  EXPECT_EQ(hurry.NextLook(kStart + LookHurry::kLength), absl::InfiniteDuration());
}

// Else whoever makes a name each 10 ms would have it looked for each 5.
TEST(LookHurryTest, NamesWithoutEndThatAreNoWritersAreLookedForEverLessOften) {
  LookHurry hurry;
  const int first = LooksUnderNoise(hurry, kStart, kStart + absl::Seconds(1));
  EXPECT_GT(first, 60) << "the first times are nearly as before";
  (void)LooksUnderNoise(hurry, kStart + absl::Seconds(1), kStart + absl::Seconds(10));
  const int later = LooksUnderNoise(hurry, kStart + absl::Seconds(10), kStart + absl::Seconds(21));
  EXPECT_LE(later, 11 * 20) << "20 looks in a tenth of a second, then a second of rest";
}

TEST(LookHurryTest, WhatArrivesInThePauseIsLookedForAfterIt) {
  LookHurry hurry;
  hurry.OnArrival(kStart);
  EXPECT_TRUE(hurry.IsDue(kStart));
  hurry.Looked(Seen::kNothing, kStart);
  const absl::Duration in_pause = kStart + LookHurry::kLength + kMs;
  EXPECT_FALSE(hurry.IsListening(in_pause));
  hurry.OnArrival(in_pause);
  EXPECT_FALSE(hurry.IsDue(in_pause));
  EXPECT_EQ(hurry.listens_from(), kStart + LookHurry::kLength + LookHurry::kPauseMin);
  const absl::Duration after = kStart + LookHurry::kLength + LookHurry::kPauseMin;
  EXPECT_EQ(hurry.NextLook(in_pause), after);
  EXPECT_TRUE(hurry.IsDue(after));
}

TEST(LookHurryTest, AWriterOrALongCalmEndsThePauses) {
  for (const bool is_calm : {false, true}) {
    SCOPED_TRACE(is_calm);
    LookHurry hurry;
    (void)LooksUnderNoise(hurry, kStart, kStart + absl::Minutes(1));
    absl::Duration now = kStart + absl::Minutes(1);
    if (is_calm) {
      // The last that came is looked for, in vain.
      now += 2 * LookHurry::kPauseMax;
      (void)hurry.IsDue(now);
      now += LookHurry::kLength + LookHurry::kCalm;
    } else {
      while (!hurry.IsDue(now)) hurry.OnArrival(now += kMs);
      hurry.Looked(Seen::kWriters, now);
      EXPECT_TRUE(hurry.IsDue(now + LookHurry::kStep)) << "others come with it";
      now += LookHurry::kLength;
      EXPECT_TRUE(hurry.IsListening(now));
    }
    hurry.OnArrival(now);
    EXPECT_TRUE(hurry.IsDue(now));
    EXPECT_TRUE(hurry.IsListening(now + LookHurry::kLength + LookHurry::kPauseMin));
  }
}

// One user's names are not for another to wait for.
TEST(LookHurryTest, WhatComesToOtherRootsCostsNoPause) {
  LookHurry hurry;
  for (absl::Duration now = kStart; now < kStart + absl::Seconds(5); now += 10 * kMs) {
    hurry.OnArrival(now);
    ASSERT_TRUE(hurry.IsDue(now));
    hurry.Looked(Seen::kNoChange, now);
    ASSERT_TRUE(hurry.IsListening(now));
    ASSERT_EQ(hurry.NextLook(now), absl::InfiniteDuration());
  }
}

}  // namespace
}  // namespace stepwell::agent
