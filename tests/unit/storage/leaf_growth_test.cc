#include "storage/leaf_growth.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr LeafKey kToday = {0, 20'000};
constexpr LeafKey kOfOtherClass = {1, 20'000};

TEST(LeafGrowthTest, ALeafIsDueOnceItHasRowsAndThenTenfold) {
  LeafGrowth growth;
  growth.NoteRows(kToday, kAnalyzedFromRows - 1);
  EXPECT_EQ(growth.TakeDue(), std::nullopt) << "any plan is quick";
  growth.NoteRows(kToday, 1);
  EXPECT_EQ(growth.TakeDue(), kToday);
  EXPECT_EQ(growth.TakeDue(), std::nullopt) << "once";
  growth.NoteRows(kToday, 9 * kAnalyzedFromRows - 1);
  EXPECT_EQ(growth.TakeDue(), std::nullopt);
  growth.NoteRows(kToday, 1);
  EXPECT_EQ(growth.TakeDue(), kToday);
}

TEST(LeafGrowthTest, LeavesAreDueEachForItself) {
  LeafGrowth growth;
  growth.NoteRows(kToday, kAnalyzedFromRows);
  growth.NoteRows(kOfOtherClass, kAnalyzedFromRows);
  EXPECT_EQ(growth.TakeDue(), kToday);
  EXPECT_EQ(growth.TakeDue(), kOfOtherClass);
  EXPECT_EQ(growth.TakeDue(), std::nullopt);
}

TEST(LeafGrowthTest, OldLeavesAreForgotten) {
  LeafGrowth growth;
  for (std::int32_t day = 0; day < 1000; ++day) growth.NoteRows({0, day}, kAnalyzedFromRows);
  int due = 0;
  while (const auto leaf = growth.TakeDue()) {
    EXPECT_GT(leaf->received_day, 700);
    ++due;
  }
  EXPECT_LT(due, 300);
}

}  // namespace
}  // namespace stepwell
