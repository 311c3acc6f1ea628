#include "storage/integer_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using Integers = std::vector<std::int64_t>;

// A walk of any length, flat for a while now and then, in multiples of some factor.
Integers RandomWalk(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  Integers integers(1 + below(below(2) == 0 ? 12 : 700));
  const auto factor = static_cast<std::int64_t>(1 + below(3));
  const auto step_max = static_cast<std::int64_t>(1 + below(below(2) == 0 ? 4 : 1 << 20));
  const auto drift = static_cast<std::int64_t>(below(3)) * factor * step_max;
  std::int64_t at = static_cast<std::int64_t>(below(7)) * factor - 3 * factor;
  for (std::int64_t& integer : integers) {
    integer = at;
    if (below(3) == 0) continue;
    at += drift + factor * (static_cast<std::int64_t>(below(2 * step_max + 1)) - step_max);
  }
  return integers;
}

TEST(IntegerShapeTest, MeasuresRandomWalksAsOneByOneDoes) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const Integers integers = RandomWalk(random);
    const Lanes lanes = round % 2 == 0 ? Lanes::kOne : WidestLanes();
    const IntegerTotals totals = TotalsOf(integers, lanes);
    EXPECT_EQ(totals.sum, std::accumulate(integers.begin(), integers.end(), std::int64_t{0}));
    const IntegerRange range = MeasureRange(integers, totals);
    EXPECT_EQ(range.min, *std::min_element(integers.begin(), integers.end()));
    EXPECT_EQ(range.max, *std::max_element(integers.begin(), integers.end()));
    ASSERT_TRUE(range.narrow);
    std::int64_t factor = 0;
    for (const std::int64_t integer : integers) factor = std::gcd(factor, integer - range.min);
    ASSERT_EQ(range.factor, static_cast<std::uint64_t>(std::max<std::int64_t>(factor, 1)));
    const IntegerShape shape = MeasureShape(integers, range, lanes);
    EXPECT_EQ(shape.zero_count,
              static_cast<std::size_t>(std::count(integers.begin(), integers.end(), 0)));
    Integers deltas(integers.size());
    std::adjacent_difference(integers.begin(), integers.end(), deltas.begin());
    deltas.erase(deltas.begin());
    const auto kept = std::count(deltas.begin(), deltas.end(), 0);
    EXPECT_EQ(shape.run_count, integers.size() - static_cast<std::size_t>(kept));
    if (deltas.empty()) continue;
    EXPECT_EQ(shape.delta_min, *std::min_element(deltas.begin(), deltas.end()));
    ASSERT_EQ(shape.delta_max, *std::max_element(deltas.begin(), deltas.end())) << round;
  }
}

TEST(IntegerShapeTest, ALineIsGivenUpOnlyWhereItIsWiderThanAsked) {
  std::mt19937_64 random(testing::TestSeed());
  int given_up = 0;
  for (int round = 0; round < 2000; ++round) {
    const Integers integers = RandomWalk(random);
    if (integers.size() < 2) continue;
    const Lanes lanes = round % 2 == 0 ? Lanes::kOne : WidestLanes();
    const auto line = MeasureLine(integers, 63, lanes);
    ASSERT_TRUE(line.has_value());
    const IntegerRange& residual = line->residual;
    std::int64_t least = 0, greatest = 0, factor = 0, at = integers.front();
    for (const std::int64_t integer : integers) {
      least = std::min(least, integer - at);
      greatest = std::max(greatest, integer - at);
      factor = std::gcd(factor, integer - at - residual.min);
      at += line->step;
    }
    ASSERT_EQ(residual.factor, static_cast<std::uint64_t>(std::max<std::int64_t>(factor, 1)));
    EXPECT_EQ(residual.min, least);
    EXPECT_EQ(residual.max, greatest);
    const int width = residual.Width();
    EXPECT_TRUE(MeasureLine(integers, width, lanes).has_value()) << round;
    // What it may look at early is a bound; that it stops where it can is what makes it cheap.
    given_up += MeasureLine(integers, width - 1, lanes).has_value() ? 0 : 1;
  }
  EXPECT_GT(given_up, 1000);
}

// Of every length around whole vectors, with runs that end at each place.
TEST(IntegerShapeTest, FindsTheEndOfEachRun) {
  std::mt19937_64 random(testing::TestSeed());
  for (std::size_t count = 1; count <= 70; ++count) {
    for (int round = 0; round < 100; ++round) {
      const std::uint64_t length = 1 + random() % (2 * count);
      Integers integers(count);
      std::vector<std::uint32_t> ends;
      for (std::uint32_t i = 1; i < count; ++i) {
        integers[i] = integers[i - 1];
        if (random() % length != 0) continue;
        ends.push_back(i);
        // Apart in the lowest bit or in the highest alone, too.
        integers[i] ^= static_cast<std::int64_t>(std::uint64_t{1} << random() % 64);
      }
      ends.push_back(static_cast<std::uint32_t>(count));
      for (const Lanes lanes : {Lanes::kOne, WidestLanes()}) {
        ASSERT_EQ(RunEnds(integers, ends.size(), lanes), ends);
      }
    }
  }
}

TEST(IntegerShapeTest, MeasuresExtremesOf64Bits) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const struct {
    std::string name;
    Integers integers;
    std::int64_t min, max, sum;
    bool narrow;
  } rows[] = {
      {"from end to end", {kMin, kMax}, kMin, kMax, -1, false},
      {"in whole vectors", {0, kMax, 0, kMin, 0, 0, 0, 1}, kMin, kMax, 0, false},
      {"behind whole vectors", {0, 0, 0, 0, kMax, -1}, -1, kMax, kMax - 1, false},
      {"as far apart as an int64 is", {0, 0, 0, 0, kMax}, 0, kMax, kMax, true},
      {"a sum that wraps", {kMax, kMax, kMax, kMax, 4}, 4, kMax, 0, true},
      {"least throughout", Integers(5, kMin), kMin, kMin, kMin, true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    for (const Lanes lanes : {Lanes::kOne, WidestLanes()}) {
      const IntegerTotals totals = TotalsOf(row.integers, lanes);
      EXPECT_EQ(totals.min, row.min);
      EXPECT_EQ(totals.max, row.max);
      EXPECT_EQ(totals.sum, row.sum);
      EXPECT_EQ(MeasureRange(row.integers, totals).narrow, row.narrow);
    }
  }
  const Integers swinging = {0, kMax, 0, kMax, 0, kMax, 0};
  for (const Lanes lanes : {Lanes::kOne, WidestLanes()}) {
    const IntegerShape shape = MeasureShape(swinging, MeasureRange(swinging), lanes);
    EXPECT_EQ(shape.delta_min, -kMax);
    EXPECT_EQ(shape.delta_max, kMax);
    EXPECT_EQ(shape.run_count, 7u);
    EXPECT_EQ(shape.zero_count, 4u);
  }
}

}  // namespace
}  // namespace stepwell
