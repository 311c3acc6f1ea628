#include "server/compare_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Series Of(std::int32_t no, const std::string& name, Labels labels,
          const std::string& unit = "seconds", SeriesKind kind = SeriesKind::kGauge,
          const std::string& group = "timing") {
  return {SeriesNo{no}, {{group, name, std::move(labels)}, unit, kind}};
}

TEST(CompareGroupsTest, FoldsRanksAndMatchesByNameAcrossTrials) {
  const auto groups = GroupTrials(
      {{Of(1, "step", {{"rank", "0"}}), Of(2, "step", {{"rank", "1"}}), Of(3, "load", {})},
       {Of(1, "save", {}), Of(2, "step", {{"rank", "0"}})}},
      {});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].key.name, "load");
  EXPECT_THAT(groups[0].sides, ElementsAre(ElementsAre(SeriesNo{3}), IsEmpty()));
  EXPECT_EQ(groups[1].key.name, "save");
  EXPECT_THAT(groups[1].sides, ElementsAre(IsEmpty(), ElementsAre(SeriesNo{1})));
  EXPECT_EQ(groups[2].key.name, "step");
  EXPECT_THAT(groups[2].key.labels, IsEmpty());
  EXPECT_EQ(groups[2].unit, "seconds");
  EXPECT_THAT(groups[2].sides,
              ElementsAre(ElementsAre(SeriesNo{1}, SeriesNo{2}), ElementsAre(SeriesNo{2})));
  const auto side = SideOf(groups, 1);
  ASSERT_EQ(side.size(), 3u);
  EXPECT_THAT(side[0].series_nos, IsEmpty());
  EXPECT_THAT(side[2].series_nos, ElementsAre(SeriesNo{2}));
}

TEST(CompareGroupsTest, KeptLabelsStayApartInTheOrderOfTheirValues) {
  const auto groups = GroupTrials({{Of(1, "step", {{"agent", "b"}, {"rank", "1"}}),
                                    Of(2, "step", {{"agent", "a"}, {"rank", "0"}})},
                                   {Of(7, "step", {{"agent", "c"}, {"rank", "1"}})}},
                                  {"rank", "no such label"});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].key.labels, (Labels{{"rank", "0"}}));
  EXPECT_THAT(groups[0].sides, ElementsAre(ElementsAre(SeriesNo{2}), IsEmpty()));
  EXPECT_EQ(groups[1].key.labels, (Labels{{"rank", "1"}}));
  EXPECT_THAT(groups[1].sides, ElementsAre(ElementsAre(SeriesNo{1}), ElementsAre(SeriesNo{7})));
}

TEST(CompareGroupsTest, TellsWhereUnitsOrKindsDiffer) {
  struct Row {
    const char* name;
    Series first, second;
    bool units_differ;
    std::string unit;
    SeriesKind kind;
  };
  const SeriesKind counter = SeriesKind::kCounter;
  const Row rows[] = {
      {"alike", Of(1, "x", {}), Of(1, "x", {}), false, "seconds", SeriesKind::kGauge},
      {"units", Of(1, "x", {}), Of(1, "x", {}, "ms"), true, "", SeriesKind::kGauge},
      {"a unit and none", Of(1, "x", {}, ""), Of(1, "x", {}), true, "", SeriesKind::kGauge},
      {"kinds", Of(1, "x", {}), Of(1, "x", {}, "seconds", counter), false, "seconds", SeriesKind{}},
      {"no units", Of(1, "x", {}, ""), Of(1, "x", {}, ""), false, "", SeriesKind::kGauge},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto groups = GroupTrials({{row.first}, {row.second}}, {});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].units_differ, row.units_differ);
    EXPECT_EQ(groups[0].unit, row.unit);
    EXPECT_EQ(groups[0].kind, row.kind);
  }
}

TEST(CompareGroupsTest, MetricGroupsStayApart) {
  EXPECT_EQ(
      GroupTrials({{Of(1, "x", {})}, {Of(1, "x", {}, "1", SeriesKind::kGauge, "training")}}, {})
          .size(),
      2u);
  EXPECT_THAT(GroupTrials({{}, {}}, {}), IsEmpty());
}

}  // namespace
}  // namespace stepwell
