#include "server/quantile_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

// Nearest rank over the sorted values.
double Exact(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

TEST(QuantileSketchTest, IsExactByNearestRank) {
  QuantileSketch sketch;
  for (int i = 100; i >= 1; --i) sketch.Add(i);
  EXPECT_EQ(sketch.Quantile(0.50), 50);
  EXPECT_EQ(sketch.Quantile(0.95), 95);
  EXPECT_EQ(sketch.Quantile(0.99), 99);
  EXPECT_EQ(sketch.Quantile(1), 100);
  EXPECT_EQ(sketch.Quantile(0.001), 1);
  EXPECT_TRUE(sketch.exact());
}

TEST(QuantileSketchTest, StaysWithinOnePercentBeyondAMillion) {
  std::mt19937_64 random(TestSeed());
  std::lognormal_distribution<double> seconds(-4, 2);
  QuantileSketch sketch;
  std::vector<double> values;
  for (std::size_t i = 0; i < QuantileSketch::kExactMax + 200'000; ++i) {
    const double value = i % 50 == 0 ? 0 : i % 77 == 0 ? -seconds(random) : seconds(random);
    values.push_back(value);
    sketch.Add(value);
    if (i + 1 == QuantileSketch::kExactMax) {
      EXPECT_TRUE(sketch.exact());
    }
  }
  EXPECT_FALSE(sketch.exact());
  std::sort(values.begin(), values.end());
  for (const double q : {0.001, 0.005, 0.02, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    SCOPED_TRACE(q);
    const double exact = Exact(values, q);
    // 1.0001: the logarithm itself is rounded.
    EXPECT_NEAR(sketch.Quantile(q), exact,
                std::abs(exact) * QuantileSketch::kRelativeError * 1.0001);
  }
}

TEST(QuantileSketchTest, HoldsTheWholeRangeOfDoublesInOrder) {
  using Limits = std::numeric_limits<double>;
  QuantileSketch sketch;
  for (std::size_t i = 0; i <= QuantileSketch::kExactMax; ++i) sketch.Add(1);
  for (const double value : {-Limits::infinity(), -Limits::max(), Limits::denorm_min(),
                             Limits::max(), Limits::infinity()}) {
    sketch.Add(value);
  }
  const auto n = static_cast<double>(sketch.count());
  EXPECT_EQ(sketch.Quantile(0.5 / n), -Limits::infinity());
  EXPECT_NEAR(sketch.Quantile(1.5 / n) / -Limits::max(), 1, 0.0101);
  EXPECT_EQ(sketch.Quantile(2.5 / n), 0);
  EXPECT_NEAR(sketch.Quantile(0.5), 1, 0.0101);
  EXPECT_EQ(sketch.Quantile(1), Limits::infinity());
}

}  // namespace
}  // namespace stepwell
