#include "storage/integer_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

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
    EXPECT_EQ(TotalsOf(integers).sum,
              std::accumulate(integers.begin(), integers.end(), std::int64_t{0}));
    const IntegerRange range = MeasureRange(integers);
    EXPECT_EQ(range.min, *std::min_element(integers.begin(), integers.end()));
    EXPECT_EQ(range.max, *std::max_element(integers.begin(), integers.end()));
    ASSERT_TRUE(range.narrow);
    std::int64_t factor = 0;
    for (const std::int64_t integer : integers) factor = std::gcd(factor, integer - range.min);
    ASSERT_EQ(range.factor, static_cast<std::uint64_t>(std::max<std::int64_t>(factor, 1)));
    const IntegerShape shape = MeasureShape(integers, range);
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
    const auto line = MeasureLine(integers, 63);
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
    EXPECT_TRUE(MeasureLine(integers, width).has_value()) << round;
    // What it may look at early is a bound; that it stops where it can is what makes it cheap.
    given_up += MeasureLine(integers, width - 1).has_value() ? 0 : 1;
  }
  EXPECT_GT(given_up, 1000);
}

TEST(IntegerShapeTest, TheLongestRunMayBeTheFirstOrTheLast) {
  EXPECT_EQ(LongestRun(Integers{5}), 1u);
  EXPECT_EQ(LongestRun(Integers{5, 5, 5, 4, 4}), 3u);
  EXPECT_EQ(LongestRun(Integers{5, 4, 4, 5, 5, 5}), 3u);
}

}  // namespace
}  // namespace stepwell
