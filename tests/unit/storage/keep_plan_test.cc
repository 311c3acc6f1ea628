#include "storage/keep_plan.h"

#include <gtest/gtest.h>

#include "storage/caps_index.h"
#include "storage/merge_classes.h"
#include "tests/unit/storage/placed_caps.h"

namespace stepwell {
namespace {

using testing::OfAll;
using testing::OfProject;
using testing::OfTrial;

constexpr std::int64_t kDay = 86'400;

TEST(KeepPlanTest, GivesEachGroupItsClass) {
  const KeepClasses classes({{0, {}}, {1, {kDay, 0}}, {2, {2 * kDay, 0}}, {3, {3 * kDay, 0}}});
  const KeepPlan plan({OfAll("", 1), OfAll("gpu", 2), OfTrial(7, "cpu", 9)}, 5, 7, classes);
  EXPECT_EQ(plan.ClassOf("disk"), 1);
  EXPECT_EQ(plan.ClassOf("gpu"), 2);
  EXPECT_EQ(plan.ClassOf("cpu"), 0) << "nine days have no class: for ever";
  EXPECT_EQ(plan.used(), (std::vector<KeepClass>{{0, {}}, {1, {kDay, 0}}, {2, {2 * kDay, 0}}}));
  EXPECT_EQ(KeepPlan().ClassOf("gpu"), 0);
  EXPECT_EQ(KeepPlan().used(), (std::vector<KeepClass>{{0, {}}}));
}

TEST(KeepPlanTest, TicksOfAClassAndStretchAreWrittenOnce) {
  const KeepClasses classes({{0, {}}, {1, {kDay, 0}}});
  const std::string gpu = "gpu", cpu = "cpu";
  MergeClasses work(KeepPlan({OfAll("gpu", 1)}, 5, 7, classes),
                    {SeriesNo{3}, SeriesNo{4}, SeriesNo{9}}, {&gpu, &cpu, &gpu});
  EXPECT_EQ(work.ClassOf(SeriesNo{3}), 1);
  EXPECT_EQ(work.ClassOf(SeriesNo{4}), 0);
  EXPECT_EQ(work.SeriesOf(1), (std::vector<std::int32_t>{3, 9}));
  EXPECT_EQ(work.SeriesOf(0), (std::vector<std::int32_t>{4}));
  EXPECT_TRUE(work.NoteTicks(1, 0));
  EXPECT_TRUE(work.NoteTicks(0, 0));
  EXPECT_TRUE(work.NoteTicks(1, 1));
  EXPECT_FALSE(work.NoteTicks(1, 0));
}

TEST(KeepPlanTest, ClassZeroIsUsedEvenWhereTheTableLacksIt) {
  const std::vector<PlacedCaps> placed = {OfTrial(7, "", 3)};
  const KeepPlan plan(placed, 5, 7, KeepClasses({}));
  EXPECT_EQ(plan.ClassOf("gpu"), 0);
  ASSERT_EQ(plan.used().size(), 1u);
  EXPECT_EQ(plan.used()[0].keep_class, 0);
}

TEST(KeepPlanTest, AnIndexOfPlacesFindsThoseThatDecide) {
  PlacedCaps samples = OfTrial(8, "", std::nullopt);
  samples.caps.series_samples = 5;
  const std::vector<PlacedCaps> placed = {OfAll("", 1), OfProject(5, "gpu", 2), OfTrial(7, "", 3),
                                          OfProject(6, "", 4), samples};
  const CapsIndex index(placed);
  EXPECT_EQ(index.Of(5, 7).size(), 3u);
  EXPECT_EQ(index.Of(5, 9).size(), 2u);
  EXPECT_EQ(index.Of(0, 0).size(), 1u);
  for (const std::string group : {"", "gpu"}) {
    EXPECT_EQ(ResolveCaps(index.Of(5, 7), 5, 7, group).raw_age_seconds.value,
              ResolveCaps(placed, 5, 7, group).raw_age_seconds.value);
  }
  EXPECT_TRUE(index.AnyBounds(*FindCapField("raw_age_seconds")));
  EXPECT_TRUE(index.AnyBounds(*FindCapField("series_samples")));
  EXPECT_FALSE(index.AnyBounds(*FindCapField("trial_bytes")));
}

}  // namespace
}  // namespace stepwell
