#include "server/missing_counts.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

TEST(MissingCountsTest, GapsAreCountedByTheirCause) {
  MissingCounts missing;
  Gap spool;
  spool.cause = GapCause::kSpoolFull;
  spool.sample_count = 300;
  Gap unknown;
  unknown.cause = GapCause::kRestored;
  missing.AddGaps({spool, spool, unknown});
  EXPECT_EQ(missing.Gaps(GapCause::kSpoolFull).count, 2U);
  EXPECT_EQ(missing.Gaps(GapCause::kSpoolFull).sample_count, 600U);
  EXPECT_EQ(missing.Gaps(GapCause::kRestored).count, 1U) << "the last cause there is";
  EXPECT_EQ(missing.Gaps(GapCause::kRestored).sample_count, 0U);
  EXPECT_EQ(missing.Gaps(GapCause::kRingFull).count, 0U);
}

TEST(MissingCountsTest, ReasonsBeyondTheBoundAreOne) {
  MissingCounts missing;
  for (std::size_t i = 0; i < MissingCounts::kReasonsMax + 5; ++i) {
    missing.AddRejected(absl::StrCat("REASON_", i), 2);
  }
  missing.AddRejected("REASON_0", 3);
  const auto rejected = missing.Rejected();
  EXPECT_EQ(rejected.size(), MissingCounts::kReasonsMax + 1);
  EXPECT_EQ(rejected.at("REASON_0").count, 2U) << "what is known stays apart";
  EXPECT_EQ(rejected.at("REASON_0").sample_count, 5U);
  EXPECT_EQ(rejected.at("OTHER").count, 5U);
  EXPECT_EQ(rejected.at("OTHER").sample_count, 10U);
}

}  // namespace
}  // namespace stepwell
