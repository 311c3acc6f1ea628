#include "server/series_group.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

Series Of(std::int32_t series_no, const char* metric_group) {
  Series series;
  series.series_no = SeriesNo{series_no};
  series.definition.key.metric_group = metric_group;
  series.definition.key.name = "any";
  return series;
}

TEST(SeriesGroupTest, CountsTheSeriesOfEachGroupThatIsNamed) {
  const std::vector<Series> all = {Of(1, "gpu"), Of(2, "timing"), Of(3, "gpu"),
                                   Of(4, "cpu"), Of(5, "gpu"),    Of(6, "training")};
  EXPECT_EQ(CountByGroup(all, {"cpu", "gpu", "network"}), (std::vector<std::int32_t>{1, 3, 0}));
  EXPECT_EQ(CountByGroup(all, {}), std::vector<std::int32_t>());
  EXPECT_EQ(CountByGroup({}, {"gpu"}), std::vector<std::int32_t>{0});
}

TEST(SeriesGroupTest, GroupsOfKeysAreSortedAndEachOnce) {
  const std::vector<SeriesGroup> groups =
      EachByItself({Of(1, "timing"), Of(2, "gpu"), Of(3, "timing"), Of(4, "cpu")});
  EXPECT_EQ(MetricGroupsOf(groups), (std::vector<std::string>{"cpu", "gpu", "timing"}));
}

}  // namespace
}  // namespace stepwell
