#include "client/agent/epoch_log.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepwell::agent {
namespace {

TEST(EpochLogTest, ABatchIsOfTheEpochThatWasRecordedLastBeforeIt) {
  EpochLog log;
  EXPECT_EQ(log.EpochAt(0), -1);
  EXPECT_TRUE(log.Note(10, 3));
  EXPECT_FALSE(log.Note(12, 3));
  EXPECT_TRUE(log.Note(20, 4));
  EXPECT_EQ(log.EpochAt(9), -1);
  EXPECT_EQ(log.EpochAt(10), 3);
  EXPECT_EQ(log.EpochAt(19), 3);
  EXPECT_EQ(log.EpochAt(1'000'000), 4);
}

TEST(EpochLogTest, WhatIsNoEpochIsPassedOver) {
  EpochLog log;
  for (const double value : {-1.0, 3e9, std::nan("")}) EXPECT_FALSE(log.Note(0, value)) << value;
  EXPECT_EQ(log.EpochAt(0), -1);
}

TEST(EpochLogTest, BatchesThatComeAgainBeginAnew) {
  EpochLog log;
  log.Note(0, 0);
  log.Note(100, 1);
  log.Note(0, 7);
  EXPECT_EQ(log.EpochAt(100), 7);
}

// Who has a copy of it hears of what went.
TEST(EpochLogTest, WhatGoesIsNewsToo) {
  EpochLog log;
  log.Note(0, 0);
  log.Note(100, 1);
  EXPECT_TRUE(log.Note(50, 0));
  EXPECT_EQ(log.EpochAt(105), 0);
  EXPECT_FALSE(log.Note(60, 0));
}

TEST(EpochLogTest, ItHoldsTheLastChanges) {
  EpochLog log;
  for (int epoch = 0; epoch < 1000; ++epoch) log.Note(epoch * 10, epoch);
  EXPECT_EQ(log.EpochAt(9'995), 999);
  EXPECT_EQ(log.EpochAt(5), -1);
}

}  // namespace
}  // namespace stepwell::agent
