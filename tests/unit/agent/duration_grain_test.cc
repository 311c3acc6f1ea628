#include "client/agent/duration_grain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

TEST(DurationGrainTest, KeepsShortOnesAndRoundsLongOnes) {
  const struct {
    const char* name;
    std::uint64_t ns;
    std::uint64_t kept;
  } rows[] = {
      {"nothing", 0, 0},
      {"a clock's tick", 1, 1},
      {"the longest that is exact", 999'999, 999'999},
      {"the shortest that is not", 1'000'001, 1'000'000},
      {"down", 1'234'549, 1'234'500},
      {"up", 1'234'551, 1'234'600},
      {"half, to the even below", 1'234'450, 1'234'400},
      {"half, to the even above", 1'234'550, 1'234'600},
      {"what is kept already", 96'000'100, 96'000'100},
      {"the longest that a counter holds", UINT64_MAX, UINT64_MAX / 100 * 100},
  };
  for (const auto& row : rows) EXPECT_EQ(KeptDurationNs(row.ns), row.kept) << row.name;
}

TEST(DurationGrainTest, SumsOfManyDoNotDrift) {
  std::mt19937_64 random(TestSeed());
  std::uniform_int_distribution<std::uint64_t> around(1'000'000, 200'000'000);
  constexpr int kCount = 100'000;
  double drift_ns = 0;
  for (int i = 0; i < kCount; ++i) {
    const std::uint64_t ns = around(random);
    const std::uint64_t kept = KeptDurationNs(ns);
    ASSERT_LE(std::abs(static_cast<double>(kept) - static_cast<double>(ns)), 50) << ns;
    ASSERT_EQ(KeptDurationNs(kept), kept);
    drift_ns += static_cast<double>(kept) - static_cast<double>(ns);
  }
  // Six deviations of a mean of as many errors between -50 and 50.
  EXPECT_LT(std::abs(drift_ns / kCount), 6 * 100 / std::sqrt(12.0 * kCount));
}

}  // namespace
}  // namespace stepwell::agent
