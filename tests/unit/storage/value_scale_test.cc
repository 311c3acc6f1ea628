#include "storage/value_scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "storage/encoded_vector.h"
#include "tests/support/codec_vectors.h"

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
    for (const Lanes lanes : {Lanes::kOne, WidestLanes()}) {
      ScaledValues scaled;
      ASSERT_EQ(ScaleValues(row.values, scaled, lanes), row.expected.has_value());
      if (!row.expected) continue;
      EXPECT_EQ(scaled.divisor_exponent, row.expected->divisor_exponent);
      EXPECT_EQ(scaled.integers, row.expected->integers);
    }
  }
}

// What the header promises, one value after the other and one exponent after the other.
std::optional<Expected> ByTen(const std::vector<double>& values) {
  for (std::int16_t exponent = 0; exponent <= kDecimalExponentMax; ++exponent) {
    const double power = Divisor(exponent);
    std::vector<std::int64_t> integers;
    for (const double value : values) {
      if (!(std::fabs(value * power) <= 0x1p53)) return std::nullopt;  // nor under a greater one
      const std::int64_t k = std::llround(value * power);
      if (std::bit_cast<std::uint64_t>(static_cast<double>(k) / power) !=
          std::bit_cast<std::uint64_t>(value)) {
        break;
      }
      integers.push_back(k);
    }
    if (integers.size() == values.size()) return Expected{exponent, integers};
  }
  return std::nullopt;
}

std::optional<Expected> ByTwo(const std::vector<double>& values) {
  int exponent = 0;
  for (const double value : values) {
    const bool is_minus_zero = value == 0 && std::signbit(value);
    if (is_minus_zero || (value != 0 && !std::isnormal(value))) return std::nullopt;
    if (value == 0) continue;
    int top = 0;
    auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &top), 53));
    int lowest = top - 53;
    for (; mantissa % 2 == 0; mantissa /= 2) ++lowest;
    exponent = std::max(exponent, -lowest);
  }
  if (exponent > kBinaryExponentMax) return std::nullopt;
  std::vector<std::int64_t> integers;
  for (const double value : values) {
    const double scaled = std::ldexp(value, exponent);
    if (!(std::fabs(scaled) < 0x1p62)) return std::nullopt;
    integers.push_back(static_cast<std::int64_t>(scaled));
  }
  return Expected{static_cast<std::int16_t>(-exponent), integers};
}

struct Seen {
  int by_ten = 0;
  int by_two = 0;
  int refused = 0;
};

void ExpectAsOneByOne(const std::vector<double>& values, Seen& seen) {
  std::optional<Expected> expected = ByTen(values);
  if (expected) {
    ++seen.by_ten;
  } else {
    expected = ByTwo(values);
    ++(expected ? seen.by_two : seen.refused);
  }
  for (const Lanes lanes : {Lanes::kOne, WidestLanes()}) {
    SCOPED_TRACE(lanes == Lanes::kOne ? "plain" : "wide");
    ScaledValues scaled;
    ASSERT_EQ(ScaleValues(values, scaled, lanes), expected.has_value());
    if (!expected) continue;
    ASSERT_EQ(scaled.divisor_exponent, expected->divisor_exponent);
    ASSERT_EQ(scaled.integers, expected->integers);
  }
}

// Where a way of rounding, of looking at bits or of refusing ends, and what lies beside.
std::vector<double> Extremes() {
  using Limits = std::numeric_limits<double>;
  std::vector<double> all = {0.0,
                             -0.0,
                             0.1,
                             0.3,
                             1.0 / 3,
                             1e22,
                             1e-22,
                             1e23,
                             123456.789012,
                             Limits::quiet_NaN(),
                             std::bit_cast<double>(std::uint64_t{0x7ff8000000000abc}),
                             std::bit_cast<double>(std::uint64_t{0x7ff0000000000001}),
                             std::bit_cast<double>(std::uint64_t{0xfff8000000000000}),
                             Limits::infinity(),
                             Limits::max(),
                             Limits::min(),
                             std::nextafter(Limits::min(), 1.0),
                             std::nextafter(Limits::min(), 0.0),
                             Limits::denorm_min()};
  for (const int exponent :
       {-1023, -1021, -970, -52, -1, 0, 1, 49, 50, 51, 52, 53, 61, 62, 63, 1023}) {
    const double power = std::ldexp(1.0, exponent);
    for (const double value : {power, std::nextafter(power, 0.0), std::nextafter(power, HUGE_VAL),
                               power - 1, power - 0.5, power + 0.5, power + 1}) {
      all.push_back(value);
    }
  }
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) all.push_back(-all[i]);
  return all;
}

TEST(ValueScaleTest, SaysOfExtremesWhatOneByOneSays) {
  Seen seen;
  const std::vector<double> extremes = Extremes();
  for (const double first : extremes) {
    SCOPED_TRACE(first);
    ExpectAsOneByOne({first}, seen);
    // Of two, in whole vectors, together with what makes the column one of tenths or of whole numbers.
    for (const double second : extremes) {
      SCOPED_TRACE(second);
      ExpectAsOneByOne({first, second, first, second, 0.5, 2, 3, 4}, seen);
      ExpectAsOneByOne({1, 2, 3, 4, 5, 6, 7, first, second}, seen);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(seen.by_ten, 1000);
  EXPECT_GT(seen.by_two, 1000);
  EXPECT_GT(seen.refused, 1000);
}

TEST(ValueScaleTest, SaysOfEachPlaceInAColumnWhatOneByOneSays) {
  Seen seen;
  const std::array<double, 3> usual = {7, 0.25, std::ldexp(5.0, -40)};
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double extreme : {-0.0, 0.001, kNaN, 0x1p51, 0x1p53 + 2, 5e-324, 1.0 / 3, 0x1p62}) {
    for (const double value : usual) {
      for (std::size_t count = 0; count <= 70; ++count) {
        SCOPED_TRACE(count);
        std::vector<double> values(count, value);
        ExpectAsOneByOne(values, seen);
        for (std::size_t at = 0; at < count; ++at) {
          SCOPED_TRACE(at);
          values[at] = extreme;
          ExpectAsOneByOne(values, seen);
          values[at] = value;
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(ValueScaleTest, SaysOfRandomColumnsWhatOneByOneSays) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<double> extremes = Extremes();
  Seen seen;
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    std::vector<double> values = testing::RandomValues(random);
    ExpectAsOneByOne(values, seen);
    if (values.empty()) continue;
    values[random() % values.size()] = extremes[random() % extremes.size()];
    ExpectAsOneByOne(values, seen);
  }
  EXPECT_GT(seen.by_ten, 1000);
  EXPECT_GT(seen.by_two, 1000);
  EXPECT_GT(seen.refused, 1000);
}

}  // namespace
}  // namespace stepwell
