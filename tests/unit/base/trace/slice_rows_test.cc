#include "base/trace/slice_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "base/trace/interval_set.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;

// What each row was told: begins as +, ends as -.
struct Told {
  SliceRows rows;
  std::map<int, std::vector<std::int64_t>> points;
  std::vector<int> placed;

  SliceRows::TakeEnd taker() {
    return [this](int row, std::int64_t end) { points[row].push_back(-end); };
  }
  void Place(std::int64_t begin, std::int64_t end) {
    const auto row = rows.Place(begin, end, taker());
    placed.push_back(row.value_or(-1));
    if (row.has_value()) points[*row].push_back(begin);
  }
};

TEST(SliceRows, NestedSlicesShareARowAndOverlappingOnesDoNot) {
  Told told;
  told.Place(10, 100);
  told.Place(10, 50);
  told.Place(50, 60);  // where the one before ends
  told.Place(55, 70);  // overlaps it
  told.Place(60, 65);
  told.Place(70, 70);
  told.rows.EndAll(told.taker());
  EXPECT_THAT(told.placed, ElementsAre(0, 0, 0, 1, 0, 0));
  EXPECT_THAT(told.points[0], ElementsAre(10, 10, -50, 50, -60, 60, -65, 70, -70, -100));
  EXPECT_THAT(told.points[1], ElementsAre(55, -70));
}

TEST(SliceRows, WhatComesLateGoesElsewhere) {
  Told told;
  told.Place(100, 200);
  told.Place(150, 160);
  told.Place(50, 300);
  told.rows.EndAll(told.taker());
  told.Place(120, 130);
  EXPECT_THAT(told.placed, ElementsAre(0, 0, 1, 2));
}

TEST(SliceRows, MoreThanItsRowsAreRefused) {
  Told told;
  for (int i = 0; i <= SliceRows::kRowsMax; ++i) told.Place(i, 1000 + i);
  EXPECT_EQ(told.placed[SliceRows::kRowsMax - 1], SliceRows::kRowsMax - 1);
  EXPECT_EQ(told.placed.back(), -1);
}

// A reader sorts by time, those of one time as they came, and lets an end close what began last.
TEST(SliceRows, AnySlicesComeBackAsTheyWere) {
  const std::uint64_t seed = testing::TestSeed();

  for (std::uint64_t round = 0; round < 300; ++round) {
    std::mt19937_64 random(seed + round);
    std::vector<Interval> slices;
    for (int i = 0; i < 12; ++i) {
      const auto begin = static_cast<std::int64_t>(1 + random() % 12);
      slices.push_back({begin, begin + static_cast<std::int64_t>(random() % 6)});
    }
    if (round % 2 == 0) {
      std::sort(slices.begin(), slices.end(), [](const Interval& a, const Interval& b) {
        return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
      });
    }
    Told told;
    std::map<int, std::vector<Interval>> wanted;
    for (const Interval& each : slices) {
      told.Place(each.begin, each.end);
      ASSERT_GE(told.placed.back(), 0);
      wanted[told.placed.back()].push_back(each);
    }
    told.rows.EndAll(told.taker());
    for (auto& [row, points] : told.points) {
      std::vector<Interval> seen;
      std::vector<std::size_t> open;
      std::int64_t last = 0;
      for (const std::int64_t point : points) {
        const std::int64_t time = std::abs(point);
        EXPECT_GE(time, last) << "row " << row;
        last = time;
        if (point > 0) {
          seen.push_back({time, 0});
          open.push_back(seen.size() - 1);
          continue;
        }
        ASSERT_FALSE(open.empty());
        seen[open.back()].end = time;
        open.pop_back();
      }
      EXPECT_TRUE(open.empty());
      EXPECT_TRUE(seen == wanted[row]) << "row " << row;
    }
  }
}

}  // namespace
}  // namespace stepwell
