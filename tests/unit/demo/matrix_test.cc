#include "client/demo/matrix.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace stepwell::demo {
namespace {

std::vector<float> Random(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

TEST(MatrixTest, MultipliesAsTheDefinitionSays) {
  const struct {
    const char* name;
    int m, k, n;
  } rows[] = {
      {"one", 1, 1, 1},        {"a row", 1, 7, 5},           {"a column", 9, 3, 1},
      {"odd edges", 5, 3, 67}, {"exact blocks", 8, 16, 128}, {"the model's", 128, 192, 160}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const std::vector<float> a = Random(row.m * row.k, 1);
    const std::vector<float> b = Random(row.k * row.n, 2);
    std::vector<float> c(row.m * row.n, 9);
    Multiply(a.data(), b.data(), c.data(), row.m, row.k, row.n);
    for (int i = 0; i < row.m; ++i) {
      for (int j = 0; j < row.n; ++j) {
        double sum = 0;
        for (int l = 0; l < row.k; ++l) sum += double{a[i * row.k + l]} * double{b[l * row.n + j]};
        ASSERT_NEAR(c[i * row.n + j], sum, 1e-4) << i << " " << j;
      }
    }
  }
}

TEST(MatrixTest, Transposes) {
  const std::vector<float> from = {1, 2, 3, 4, 5, 6};
  std::vector<float> to(6);
  Transpose(from.data(), to.data(), 2, 3);
  EXPECT_EQ(to, (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

}  // namespace
}  // namespace stepwell::demo
