#include "storage/series_groups.h"

#include "tests/contract/store_test.h"

namespace stepwell {
namespace {

using SeriesGroupsTest = testing::StoreTest;

// Of any text, and as many as a trial has series: kept for good they filled the master's memory.
TEST_F(SeriesGroupsTest, ForgetsNamesWithTheSeriesThatHadThem) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 4);
  SeriesGroups groups;
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(groups.Prepare(*sql_, {{writer.trial_id, SeriesNo{4}}}).ok());
    EXPECT_EQ(groups.group_count(), 3u);
    EXPECT_EQ(groups.GroupOf(writer.trial_id, SeriesNo{1}), "gpu");
    EXPECT_EQ(groups.GroupOf(writer.trial_id, SeriesNo{4}), "timing");
    EXPECT_EQ(groups.GroupOf(writer.trial_id, SeriesNo{5}), "");
    groups.Clear();
    EXPECT_EQ(groups.group_count(), 1u);
    EXPECT_EQ(groups.GroupOf(writer.trial_id, SeriesNo{1}), "");
  }
}

}  // namespace
}  // namespace stepwell
