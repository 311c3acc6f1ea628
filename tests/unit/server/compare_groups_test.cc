#include "server/compare_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::vector<SeriesNo>> NosOf(const ComparedGroup& group) {
  std::vector<std::vector<SeriesNo>> nos;
  for (const ComparedGroup::Side& side : group.sides) nos.push_back(side.series_nos);
  return nos;
}

std::vector<std::string> UnitsOf(const ComparedGroup& group) {
  std::vector<std::string> units;
  for (const ComparedGroup::Side& side : group.sides) units.push_back(side.unit);
  return units;
}

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
  EXPECT_THAT(NosOf(groups[0]), ElementsAre(ElementsAre(SeriesNo{3}), IsEmpty()));
  EXPECT_EQ(groups[1].key.name, "save");
  EXPECT_THAT(NosOf(groups[1]), ElementsAre(IsEmpty(), ElementsAre(SeriesNo{1})));
  EXPECT_EQ(groups[2].key.name, "step");
  EXPECT_THAT(groups[2].key.labels, IsEmpty());
  EXPECT_EQ(groups[2].unit, "seconds");
  EXPECT_THAT(NosOf(groups[2]),
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
  EXPECT_THAT(NosOf(groups[0]), ElementsAre(ElementsAre(SeriesNo{2}), IsEmpty()));
  EXPECT_EQ(groups[1].key.labels, (Labels{{"rank", "1"}}));
  EXPECT_THAT(NosOf(groups[1]), ElementsAre(ElementsAre(SeriesNo{1}), ElementsAre(SeriesNo{7})));
}

TEST(CompareGroupsTest, TellsWhereUnitsOrKindsDiffer) {
  struct Row {
    const char* name;
    Series first, second;
    bool same_unit;
    std::string unit;
    SeriesKind kind;
  };
  const SeriesKind counter = SeriesKind::kCounter;
  const Row rows[] = {
      {"alike", Of(1, "x", {}), Of(1, "x", {}), true, "seconds", SeriesKind::kGauge},
      {"units", Of(1, "x", {}), Of(1, "x", {}, "ms"), false, "", SeriesKind::kGauge},
      {"a unit and none", Of(1, "x", {}, ""), Of(1, "x", {}), false, "", SeriesKind::kGauge},
      {"kinds", Of(1, "x", {}), Of(1, "x", {}, "seconds", counter), true, "seconds", SeriesKind{}},
      {"no units", Of(1, "x", {}, ""), Of(1, "x", {}, ""), true, "", SeriesKind::kGauge},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto groups = GroupTrials({{row.first}, {row.second}}, {});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_THAT(HaveUnitOfFirst(groups[0]), ElementsAre(true, row.same_unit));
    EXPECT_EQ(groups[0].unit, row.unit);
    EXPECT_EQ(groups[0].kind, row.kind);
  }
}

TEST(CompareGroupsTest, EachTrialHasItsOwnUnit) {
  struct Row {
    const char* name;
    std::vector<std::vector<std::string>> of_trials;
    std::string unit;
    std::vector<std::string> units;
    std::vector<bool> have_unit_of_first;
  };
  const Row rows[] = {
      {"one of three", {{"s"}, {"ms"}, {"s", "s"}}, "", {"s", "ms", "s"}, {true, false, true}},
      {"the first", {{"ms"}, {"s"}, {"s"}}, "", {"ms", "s", "s"}, {true, false, false}},
      {"within one", {{"s"}, {"s", "ms", "s"}, {"s"}}, "", {"s", "", "s"}, {true, false, true}},
      {"within the first", {{"s", "ms"}, {"s"}, {""}}, "", {"", "s", ""}, {false, false, false}},
      {"without one", {{""}, {""}, {"s"}}, "", {"", "", "s"}, {true, true, false}},
      {"a trial has none", {{"s"}, {}, {"s"}}, "s", {"s", "", "s"}, {true, false, true}},
      {"the first has none", {{}, {"s"}, {"ms"}}, "", {"", "s", "ms"}, {true, false, false}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    std::vector<std::vector<Series>> of_trials;
    for (const std::vector<std::string>& units : row.of_trials) {
      std::vector<Series>& series = of_trials.emplace_back();
      for (const std::string& unit : units) {
        const auto no = static_cast<std::int32_t>(series.size()) + 1;
        series.push_back(Of(no, "x", {{"rank", std::to_string(no)}}, unit));
      }
    }
    const auto groups = GroupTrials(of_trials, {});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].unit, row.unit);
    EXPECT_EQ(UnitsOf(groups[0]), row.units);
    EXPECT_EQ(HaveUnitOfFirst(groups[0]), row.have_unit_of_first);
    EXPECT_EQ(SideOf(groups, 2)[0].unit, row.units[2]);
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
