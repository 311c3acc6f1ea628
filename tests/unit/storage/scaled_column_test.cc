#include "storage/scaled_column.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace stepwell {
namespace {

TEST(ScaledColumnTest, TellsTotalsAndWhetherTheyAreDoubles) {
  constexpr double kHalf = 4503599627370496.0;  // 2^52: two of them are the most that a sum may be
  struct Row {
    std::string name;
    std::vector<double> values;
    bool exists;
    bool sums_exactly;
    double min, max, sum;
  };
  const std::vector<Row> rows = {
      {"none", {}, false, false, 0, 0, 0},
      {"one", {-0.25}, true, true, -0.25, -0.25, -0.25},
      {"tenths, whose chain of additions is 0.9999999999999999",
       {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
       true,
       true,
       0.1,
       0.1,
       1},
      {"of both signs", {3, -7.5, 1}, true, true, -7.5, 3, -3.5},
      {"the greatest sum", {kHalf, kHalf}, true, true, kHalf, kHalf, 2 * kHalf},
      {"one beyond", {kHalf, kHalf + 1}, true, false, kHalf, kHalf + 1, 0},
      {"one beyond below", {-kHalf, -kHalf - 1}, true, false, -kHalf - 1, -kHalf, 0},
      {"not a number", {1, NAN}, false, false, 0, 0, 0},
      {"minus zero", {1, -0.0}, false, false, 0, 0, 0},
  };
  ScaledColumn scaled;  // one after the other in the same memory
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    scaled.Set(row.values);
    EXPECT_EQ(scaled.sums_exactly(), row.sums_exactly);
    ASSERT_EQ(scaled.exists(), row.exists);
    if (!row.exists) continue;
    ASSERT_EQ(scaled.integers().size(), row.values.size());
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      EXPECT_EQ(scaled.ValueOf(scaled.integers()[i]), row.values[i]);
    }
    EXPECT_EQ(scaled.ValueOf(scaled.totals().min), row.min);
    EXPECT_EQ(scaled.ValueOf(scaled.totals().max), row.max);
    if (row.sums_exactly) {
      EXPECT_EQ(scaled.ValueOf(scaled.totals().sum), row.sum);
    }
  }
}

}  // namespace
}  // namespace stepwell
