// Invariant: malloc gives back as much comes near the limit, not each time for what it cannot give; what is tight eases only
// once there is some room again.
#include "server/memory_pressure.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

class MemoryPressureTest : public ::testing::Test {
 protected:
  MemoryPressure::Verdict Look(std::int64_t resident) {
    now_ += MemoryPressure::kLookEach;
    return pressure_.Look(resident, now_);
  }

  MemoryPressure pressure_{3200};
  SteadyTime now_ = SteadyTime::Now();
};

TEST_F(MemoryPressureTest, WhatIsFarFromTheLimitIsLetBe) {
  for (const std::int64_t resident : {-1, 0, 1000, 2400}) {
    EXPECT_FALSE(Look(resident).trims) << resident;
    EXPECT_FALSE(Look(resident).is_tight) << resident;
  }
}

TEST_F(MemoryPressureTest, WhatATrimLeftIsNotTrimmedAgainUntilItGrowsOrForAWhile) {
  EXPECT_TRUE(Look(2500).trims);
  for (int i = 0; i < 90; ++i) EXPECT_FALSE(Look(2450).trims) << "live, all of it";
  EXPECT_TRUE(Look(2600).trims) << "it has grown";
  EXPECT_FALSE(Look(2590).trims);
  int trims = 0;
  for (int i = 0; i < 1000; ++i) trims += Look(2590).trims ? 1 : 0;
  EXPECT_GE(trims, 9);
  EXPECT_LE(trims, 10);
}

TEST_F(MemoryPressureTest, TightEasesOnceThereIsSomeRoomAgain) {
  EXPECT_FALSE(Look(2800).is_tight);
  EXPECT_TRUE(Look(2801).is_tight);
  EXPECT_TRUE(Look(2601).is_tight);
  EXPECT_FALSE(Look(2600).is_tight);
  EXPECT_FALSE(Look(2800).is_tight);
}

}  // namespace
}  // namespace stepwell
