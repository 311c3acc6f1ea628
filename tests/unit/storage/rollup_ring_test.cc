#include "storage/rollup_ring.h"

#include <gtest/gtest.h>

#include <set>

namespace stepwell {
namespace {

TEST(RollupRingTest, NeighbouringDaysLieInDifferentSegments) {
  for (std::int32_t day = -9; day < 9; ++day) {
    std::set<int> segments;
    for (std::int32_t more = 0; more < kRollupSegments; ++more) {
      const int segment = RollupSegmentOf(day + more);
      EXPECT_GE(segment, 0);
      EXPECT_LT(segment, kRollupSegments);
      segments.insert(segment);
    }
    EXPECT_EQ(segments.size(), static_cast<std::size_t>(kRollupSegments)) << day;
    EXPECT_EQ(RollupSegmentOf(day), RollupSegmentOf(day + kRollupSegments));
  }
}

TEST(RollupRingTest, TablesAreNamedByHome) {
  EXPECT_EQ(RollupTable("rollups", RollupHome::kLeaf, 2, 20'000).text(),
            "stepwell.\"rollups_k2_20241004\"");
  EXPECT_EQ(RollupTable("rollup_ticks", RollupHome::kRing, 2, 20'003).text(),
            "stepwell.\"recent_rollup_ticks_3\"");
}

}  // namespace
}  // namespace stepwell
