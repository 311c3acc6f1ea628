#include "server/compare_sides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;
using Side = v1::CompareTrialsResponse::Side;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Five buckets: the values by bucket, each a second after the one before.
Side SideFrom(const std::vector<std::vector<double>>& cells, bool with_buckets = true) {
  BucketFold fold(PlanBuckets(BucketAxis::kTime, 0, 500, 5));
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    for (std::size_t i = 0; i < cells[cell].size(); ++i) {
      fold.AddSample(static_cast<std::int64_t>(cell * 100 + i), -1, cells[cell][i]);
    }
  }
  Side side;
  SetStatistics(fold.buckets(), with_buckets, side);
  return side;
}

TEST(CompareSidesTest, StatisticsAreOfTheWholeRangeAndOfEachBucket) {
  const Side side = SideFrom({{1, 9}, {}, {2, kNan}, {kNan}, {4}});
  EXPECT_EQ(side.count(), 4u);
  EXPECT_EQ(side.nan_count(), 2u);
  EXPECT_EQ(side.min(), 1);
  EXPECT_EQ(side.max(), 9);
  EXPECT_EQ(side.mean(), 4);
  EXPECT_EQ(side.last(), 4);
  EXPECT_THAT(side.indexes(), ElementsAre(0u, 2u, 3u, 4u));
  EXPECT_THAT(side.mins(), ElementsAre(1, 2, IsNan(), 4));
  EXPECT_THAT(side.maxs(), ElementsAre(9, 2, IsNan(), 4));
  EXPECT_THAT(side.means(), ElementsAre(5, 2, IsNan(), 4));
  EXPECT_THAT(side.counts(), ElementsAre(2u, 1u, 0u, 1u));
  EXPECT_THAT(side.nan_counts(), ElementsAre(0u, 1u, 1u, 0u));

  const Side whole = SideFrom({{1, 9}, {}, {2, kNan}, {kNan}, {4}}, false);
  EXPECT_EQ(whole.mean(), 4);
  EXPECT_THAT(whole.indexes(), IsEmpty());
  EXPECT_THAT(whole.counts(), IsEmpty());
  EXPECT_THAT(whole.nan_counts(), IsEmpty());
  EXPECT_THAT(SideFrom({{1}, {}, {2}}).nan_counts(), IsEmpty());
}

TEST(CompareSidesTest, NothingAndNanAloneHaveNoStatistics) {
  EXPECT_EQ(SideFrom({}).ByteSizeLong(), 0u);
  const Side nan = SideFrom({{kNan}, {kNan, kNan}});
  EXPECT_EQ(nan.count(), 0u);
  EXPECT_EQ(nan.nan_count(), 3u);
  EXPECT_EQ(nan.mean(), 0);
  EXPECT_THAT(nan.indexes(), ElementsAre(0u, 1u));
  EXPECT_THAT(nan.means(), ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(nan.counts(), ElementsAre(0u, 0u));
  EXPECT_THAT(nan.nan_counts(), ElementsAre(1u, 2u));
}

TEST(CompareSidesTest, DifferencesAreToTheFirst) {
  struct Row {
    const char* name;
    std::vector<double> first, second;
    bool units_differ;
    double first_ratio, difference, ratio;
  };
  const Row rows[] = {
      {"longer", {2}, {3}, false, 1, 1, 1.5},
      {"shorter", {2, 4}, {1}, false, 1, -2, 1.0 / 3},
      {"the same", {2}, {2}, false, 1, 0, 1},
      {"below zero", {-2}, {3}, false, 1, 5, -1.5},
      {"the first is zero", {0}, {3}, false, 1, 3, 0},
      {"the first has none", {}, {3}, false, 0, 0, 0},
      {"the second has none", {3}, {}, false, 1, 0, 0},
      {"the first is NaN alone", {kNan}, {3}, false, 0, 0, 0},
      {"NaN takes no part", {2, kNan}, {kNan, 3}, false, 1, 1, 1.5},
      {"units differ", {2}, {3}, true, 1, 0, 0},
      {"to infinity", {2}, {kInf}, false, 1, kInf, kInf},
      {"both infinite", {kInf}, {kInf}, false, 1, kNan, kNan},
      {"beyond the largest", {1e-308}, {1e308}, false, 1, 1e308, kInf},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    v1::CompareTrialsResponse::ComparedSeries series;
    *series.add_sides() = SideFrom({row.first});
    *series.add_sides() = SideFrom({row.second});
    SetDifferences({true, !row.units_differ}, series);
    const auto same = [](double got, double wanted) {
      return std::isnan(wanted) ? std::isnan(got) : got == wanted;
    };
    EXPECT_EQ(series.sides(0).mean_difference(), 0);
    EXPECT_EQ(series.sides(0).mean_ratio(), row.first_ratio);
    EXPECT_TRUE(same(series.sides(1).mean_difference(), row.difference))
        << series.sides(1).mean_difference();
    EXPECT_TRUE(same(series.sides(1).mean_ratio(), row.ratio)) << series.sides(1).mean_ratio();
  }
}

TEST(CompareSidesTest, OnlySidesOfTheFirstsUnitHaveADifference) {
  v1::CompareTrialsResponse::ComparedSeries series;
  for (const double value : {2.0, 3.0, 4.0}) *series.add_sides() = SideFrom({{value}});
  SetDifferences({true, false, true}, series);
  EXPECT_EQ(series.sides(1).mean_difference(), 0);
  EXPECT_EQ(series.sides(1).mean_ratio(), 0);
  EXPECT_EQ(series.sides(2).mean_difference(), 2);
  EXPECT_EQ(series.sides(2).mean_ratio(), 2);
}

}  // namespace
}  // namespace stepwell
