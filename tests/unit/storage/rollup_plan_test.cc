// Which rollups become one row: a table of plans, and random pieces.
#include "storage/rollup_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "storage/stretch.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kStepUs = 10'000'000;

// Buckets first ... first + count of 10 s, full.
RollupPiece Piece(std::int64_t first, std::int64_t count) {
  return {.first_time_us = first * kStepUs,
          .last_time_us = (first + count) * kStepUs - 1,
          .first_bucket = first,
          .last_bucket = first + count - 1,
          .bucket_count = count};
}

std::vector<RollupPiece> Pieces(std::int64_t first, std::int64_t count, int pieces) {
  std::vector<RollupPiece> all;
  for (int i = 0; i < pieces; ++i) all.push_back(Piece(first + i * count, count));
  return all;
}

TEST(RollupPlanTest, AStretchAloneIsARow) {
  const auto planned = PlanRollups(Pieces(0, 4, 1), {});
  ASSERT_THAT(planned, SizeIs(1));
  EXPECT_EQ(planned[0].stretch_count, 1u);
  EXPECT_THAT(planned[0].narrow, IsEmpty());
}

TEST(RollupPlanTest, StretchesOfOneMergeAreJoinedUntilTheirRowIsFull) {
  const auto planned = PlanRollups(Pieces(0, 60, 13), {});
  ASSERT_THAT(planned, SizeIs(3));
  EXPECT_EQ(planned[0].stretch_count, 6u);
  EXPECT_EQ(planned[1].first_stretch, 6u);
  EXPECT_EQ(planned[2].stretch_count, 1u);
}

TEST(RollupPlanTest, NarrowRowsWaitUntilTheyFillARow) {
  EXPECT_THAT(PlanRollups(Pieces(240, 60, 1), Pieces(0, 60, 4)).at(0).narrow, IsEmpty());
  EXPECT_THAT(PlanRollups(Pieces(300, 60, 1), Pieces(0, 60, 5)).at(0).narrow,
              ElementsAre(0, 1, 2, 3, 4));
}

TEST(RollupPlanTest, ManySmallRowsAreJoinedBeforeTheyFillOne) {
  std::vector<RollupPiece> narrow = Pieces(0, 4, static_cast<int>(kSmallRollupsMax) - 1);
  EXPECT_THAT(PlanRollups(Pieces(56, 4, 1), narrow).at(0).narrow, IsEmpty());
  narrow.push_back(Piece(56, 4));
  narrow.insert(narrow.begin(), Piece(-100, 100));
  const std::vector<std::size_t> joined = PlanRollups(Pieces(60, 4, 1), narrow).at(0).narrow;
  EXPECT_THAT(joined, SizeIs(kSmallRollupsMax));
  EXPECT_EQ(joined.front(), 1u) << "the wider one is not written again";
}

TEST(RollupPlanTest, NeighboursShareABucketAtMost) {
  // As above, each beginning where the one before ends: 5 * 59 + 60.
  std::vector<RollupPiece> narrow;
  for (int i = 0; i < 5; ++i) narrow.push_back(Piece(i * 59, 60));
  EXPECT_THAT(PlanRollups(Pieces(295, 60, 1), narrow).at(0).narrow, IsEmpty());
}

TEST(RollupPlanTest, ARowSpansNoMoreThanReadersLookBack) {
  const std::int64_t day = kSlowStretchSpanUs / kStepUs;
  EXPECT_THAT(PlanRollups(Pieces(day, 200, 1), Pieces(0, 200, 1)).at(0).narrow, IsEmpty());
  EXPECT_THAT(PlanRollups(Pieces(day - 200, 200, 1), Pieces(0, 200, 1)).at(0).narrow,
              ElementsAre(0));
  // The first and the last of all times.
  RollupPiece first = Piece(0, 1);
  first.first_time_us = INT64_MIN;
  RollupPiece last = Piece(1000, 400);
  last.last_time_us = INT64_MAX;
  EXPECT_THAT(PlanRollups(std::vector{first, last}, {}), SizeIs(2));
}

TEST(RollupPlanTest, PlacesEachStretchOnceAndEachNarrowRowAtMostOnce) {
  std::mt19937_64 random(testing::TestSeed());
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<RollupPiece> stretches, narrow;
    std::int64_t at = 0;
    for (std::int64_t left = below(20); left > 0; --left) {
      stretches.push_back(Piece(at += below(below(5) == 0 ? 20'000 : 30), 1 + below(500)));
    }
    for (std::int64_t left = below(60); left > 0; --left) {
      narrow.push_back(Piece(below(20'000) - 10'000, 1 + below(kNarrowRollupBuckets - 1)));
    }
    std::size_t next_stretch = 0;
    std::vector<int> used(narrow.size(), 0);
    for (const PlannedRollup& planned : PlanRollups(stretches, narrow)) {
      ASSERT_EQ(planned.first_stretch, next_stretch);
      ASSERT_GT(planned.stretch_count, 0u);
      std::int64_t first_us = INT64_MAX, last_us = INT64_MIN, buckets = 0;
      const auto take = [&](const RollupPiece& piece) {
        first_us = std::min(first_us, piece.first_time_us);
        last_us = std::max(last_us, piece.last_time_us);
        buckets += piece.bucket_count;
      };
      for (std::size_t i = 0; i < planned.stretch_count; ++i) take(stretches.at(next_stretch++));
      for (const std::size_t index : planned.narrow) {
        ++used.at(index);
        take(narrow[index]);
      }
      ASSERT_TRUE(std::is_sorted(planned.narrow.begin(), planned.narrow.end()));
      if (planned.stretch_count + planned.narrow.size() == 1) continue;
      ASSERT_LE(last_us - first_us, kSlowStretchSpanUs);
      ASSERT_LE(buckets, kRollupRowBucketsMax + static_cast<std::int64_t>(planned.stretch_count +
                                                                          planned.narrow.size()));
    }
    ASSERT_EQ(next_stretch, stretches.size());
    ASSERT_TRUE(std::all_of(used.begin(), used.end(), [](int times) { return times <= 1; }));
  }
}

}  // namespace
}  // namespace stepwell
