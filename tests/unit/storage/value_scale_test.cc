#include "storage/value_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace stepwell {
namespace {

struct Expected {
  std::int16_t divisor_exponent;
  std::vector<std::int64_t> integers;
};

TEST(ValueScaleTest, FindsTheSmallestPowerThatGivesEveryValueBack) {
  struct Row {
    std::string name;
    std::vector<double> values;
    std::optional<Expected> expected;
  };
  const std::vector<Row> rows = {
      {"none", {}, Expected{0, {}}},
      {"integers", {1, -2, 0}, Expected{0, {1, -2, 0}}},
      {"tenths from the first on", {0.1, 2, -3.5}, Expected{1, {1, 20, -35}}},
      {"more digits at the end", {1, 2, 3, 0.25}, Expected{2, {100, 200, 300, 25}}},
      {"ever more digits", {1, 0.5, 0.25, 0.125, 7}, Expected{3, {1000, 500, 250, 125, 7000}}},
      {"the first does not fit the last's power", {9007199254740992.0, 0.1}, std::nullopt},
      {"one in the middle does not, but fits a power of two",
       {0.5, 4503599627370497.0, 0.25},
       Expected{-2, {2, 18014398509481988, 1}}},
      {"halves of a power of two", {std::ldexp(1.0, -30)}, Expected{-30, {1}}},
      {"a digit more behind a block",
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5},
       Expected{1, {10, 20, 30, 40, 50, 60, 70, 80, 90, 5}}},
      {"a block with one that is too large to be rounded quickly",
       {1, 2, 3, 4503599627370497, 5, 6, 7, 8},
       Expected{0, {1, 2, 3, 4503599627370497, 5, 6, 7, 8}}},
      {"minus zero in a block", {1, 2, 3, 4, 5, 6, 7, -0.0}, std::nullopt},
      {"not a number in a block", {1, 2, 3, 4, 5, 6, 7, NAN}, std::nullopt},
      {"minus zero", {1, -0.0}, std::nullopt},
      {"not a number", {NAN, 1}, std::nullopt},
      {"infinity", {1, INFINITY}, std::nullopt},
      {"a denormal", {5e-324}, std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    ScaledValues scaled;
    ASSERT_EQ(ScaleValues(row.values, scaled), row.expected.has_value());
    if (!row.expected) continue;
    EXPECT_EQ(scaled.divisor_exponent, row.expected->divisor_exponent);
    EXPECT_EQ(scaled.integers, row.expected->integers);
  }
}

}  // namespace
}  // namespace stepwell
