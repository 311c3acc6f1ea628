#include "server/batch_attempts.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(BatchAttemptsTest, TheNewestAttemptThatSpansABatchHasIt) {
  BatchAttempts attempts;
  attempts.Add(1, 0, 150);
  attempts.Add(2, 100, 120);  // resumed at 100, died at 120
  attempts.Add(3, 110, 110);
  EXPECT_TRUE(attempts.Counts(1, 99));
  EXPECT_FALSE(attempts.Counts(1, 100));
  EXPECT_TRUE(attempts.Counts(2, 100));
  EXPECT_FALSE(attempts.Counts(2, 110));
  EXPECT_TRUE(attempts.Counts(3, 110));
  EXPECT_TRUE(attempts.Counts(1, 121)) << "no newer attempt came so far";
  EXPECT_EQ(attempts.end_batch(), 151);
}

TEST(BatchAttemptsTest, ARangeIsOfTheNewestThatHasSomeOfIt) {
  BatchAttempts attempts;
  attempts.Add(1, 0, 150);
  attempts.Add(2, 100, 120);
  EXPECT_EQ(attempts.NewestIn(0, 100), 1);
  EXPECT_EQ(attempts.NewestIn(0, 101), 2);
  EXPECT_EQ(attempts.NewestIn(120, INT32_MAX), 2);
  EXPECT_EQ(attempts.NewestIn(121, INT32_MAX), 1);
  EXPECT_EQ(attempts.NewestIn(151, 160), std::nullopt);
}

TEST(BatchAttemptsTest, SamplesWithoutBatchCountForAll) {
  BatchAttempts attempts;
  attempts.Add(2, 0, 10);
  EXPECT_TRUE(attempts.Counts(1, -1));
  EXPECT_EQ(BatchAttempts().end_batch(), 0);
}

}  // namespace
}  // namespace stepwell
