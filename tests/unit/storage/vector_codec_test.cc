#include "storage/vector_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/further_kinds.h"
#include "tests/support/metric_kinds.h"

namespace stepwell {
namespace {

using testing::NamedIntegers;
using testing::NamedValues;

std::vector<std::uint64_t> Words(const std::vector<double>& values) {
  std::vector<std::uint64_t> words(values.size());
  if (!values.empty()) std::memcpy(words.data(), values.data(), values.size() * sizeof(double));
  return words;
}

// Parts at both ends, within, of one sample, of none and of all.
void ExpectParts(const EncodedVector& encoded, const std::vector<double>& values) {
  const std::size_t count = values.size();
  for (const std::size_t first : {std::size_t{0}, count / 3, count / 2, count - count % 7, count}) {
    for (const std::size_t end : {first, first + 1, count - count / 4, count}) {
      if (end < first || end > count) continue;
      std::vector<double> part(end - first, -1);
      const absl::Status decoded = DecodePartInto(encoded, count, first, part);
      ASSERT_TRUE(decoded.ok()) << decoded;
      const auto begin = values.begin();
      EXPECT_EQ(Words(part), Words({begin + static_cast<std::ptrdiff_t>(first),
                                    begin + static_cast<std::ptrdiff_t>(end)}))
          << "form " << static_cast<int>(encoded.form) << ", [" << first << ", " << end << ") of "
          << count;
    }
  }
}

void ExpectRoundTrip(const std::vector<double>& values) {
  const EncodedVector encoded = EncodeValues(values);
  const absl::StatusOr<std::vector<double>> decoded = DecodeValues(encoded, values.size());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(Words(*decoded), Words(values)) << "form " << static_cast<int>(encoded.form);
  ExpectParts(encoded, values);
}

void ExpectRoundTrip(const std::vector<std::int64_t>& integers) {
  const EncodedVector encoded = EncodeIntegers(integers);
  EXPECT_TRUE(encoded.raw.empty());
  EXPECT_EQ(encoded.divisor_exponent, 0);
  const absl::StatusOr<std::vector<std::int64_t>> decoded =
      DecodeIntegers(encoded, integers.size());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, integers) << "form " << static_cast<int>(encoded.form);
}

TEST(VectorCodecTest, GivesBackHostileValues) {
  for (const NamedValues& row : testing::HostileValues()) {
    SCOPED_TRACE(row.name);
    ExpectRoundTrip(row.values);
  }
}

TEST(VectorCodecTest, GivesBackHostileIntegers) {
  for (const NamedIntegers& row : testing::HostileIntegers()) {
    SCOPED_TRACE(row.name);
    ExpectRoundTrip(row.integers);
  }
}

TEST(VectorCodecTest, GivesBackRandomVectors) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    ExpectRoundTrip(testing::RandomValues(random));
    ExpectRoundTrip(testing::RandomIntegers(random));
  }
}

std::vector<double> Repeated(std::vector<double> some, std::size_t times) {
  std::vector<double> all;
  for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), some.begin(), some.end());
  return all;
}

TEST(VectorCodecTest, ChoosesTheSmallestForm) {
  std::mt19937_64 random(7);
  std::vector<double> noise, climb, runs, idle, line, walk;
  double height = 0;
  for (int i = 0; i < 1000; ++i) {
    noise.push_back(static_cast<double>(random() % 100));
    climb.push_back(height += static_cast<double>(1000 + random() % 16));
    runs.push_back(static_cast<double>(i / 100 * 7919 % 10007));
    idle.push_back(random() % 20 == 0 ? static_cast<double>(1000000 + random() % 65536) : 0);
    line.push_back(5e6 + 40 * i + static_cast<double>(random() % 16));
    walk.push_back(std::ldexp(1.0 / 3, static_cast<int>(random() % 200)));
  }
  const struct {
    std::string name;
    std::vector<double> values;
    Form form;
    int width;
    int divisor_exponent;
  } rows[] = {
      {"constant", std::vector<double>(1000, 42.5), Form::kFrame, 0, 1},
      {"noise", noise, Form::kFrame, 7, 0},
      {"climb", climb, Form::kDelta, 4, 0},
      {"runs", runs, Form::kRuns, 14, 0},
      {"idle", idle, Form::kSparse, 16, 0},
      {"line", line, Form::kLinear, 4, 0},
      {"few distant values", Repeated({1, 1e12, 7, 1e9 + 1}, 250), Form::kDictionary, 2, 0},
      {"few unscalable values", Repeated({1, NAN, -0.0, INFINITY}, 250), Form::kDictionary, 2, 0},
      {"unscalable values", walk, Form::kDictionary, 8, 0},
      {"all exponents", {1e-300, 1e300, 1.5, 1e10, 1e-10}, Form::kRaw, 0, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const EncodedVector encoded = EncodeValues(row.values);
    EXPECT_EQ(encoded.form, row.form) << static_cast<int>(encoded.form);
    EXPECT_EQ(encoded.width, row.width);
    EXPECT_EQ(encoded.divisor_exponent, row.divisor_exponent);
    ExpectRoundTrip(row.values);
  }
}

TEST(VectorCodecTest, TakesCommonFactorOut) {
  std::vector<double> memory;
  for (int i = 0; i < 100; ++i) memory.push_back(1e9 + 2097152.0 * (i * 37 % 64));
  const EncodedVector encoded = EncodeValues(memory);
  EXPECT_EQ(encoded.factor, 2097152);
  EXPECT_EQ(encoded.width, 6);
}

TEST(VectorCodecTest, HoldsStepsOfOneCadenceInNoBits) {
  std::vector<std::int64_t> batches(3600);
  for (std::size_t i = 0; i < batches.size(); ++i) batches[i] = static_cast<std::int64_t>(i) + 17;
  const EncodedVector encoded = EncodeIntegers(batches);
  EXPECT_EQ(encoded.form, Form::kDelta);
  EXPECT_EQ(encoded.bits.bit_count, 0U);
  EXPECT_EQ(EncodedBytes(encoded), kVectorHeaderBytes + kArrayOverheadBytes + 8);
}

TEST(VectorCodecTest, HoldsJitteredTicksInTheBitsOfTheJitter) {
  std::mt19937_64 random(11);
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < 3600; ++i) {
    times.push_back(1700000000000000 + i * 1000000 + static_cast<std::int64_t>(random() % 1000));
  }
  const EncodedVector encoded = EncodeIntegers(times);
  EXPECT_EQ(encoded.form, Form::kLinear);
  EXPECT_LE(encoded.width, 11);
}

TEST(VectorCodecTest, GivesBackAnHourOfEachMetricKind) {
  const std::uint64_t seed = testing::TestSeed();
  for (const auto& kinds : {testing::MetricKinds(seed), testing::FurtherMetricKinds(seed)}) {
    for (const testing::MetricKind& kind : kinds) {
      SCOPED_TRACE(kind.name);
      ExpectRoundTrip(kind.values);
    }
  }
  for (const auto& kinds : {testing::TickKinds(seed), testing::FurtherTickKinds(seed)}) {
    for (const testing::TickKind& kind : kinds) {
      SCOPED_TRACE(kind.name);
      ExpectRoundTrip(kind.integers);
    }
  }
}

TEST(VectorCodecTest, NeverTakesMoreThanRaw) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 2000; ++i) {
    const std::vector<double> values = testing::RandomValues(random);
    EXPECT_LE(EncodedBytes(EncodeValues(values)),
              kVectorHeaderBytes + kArrayOverheadBytes + 8 * values.size());
  }
}

// What others of the same values would have cost, each encoded by itself.
TEST(VectorCodecTest, EncodesTheCheaperOfTwoWays) {
  std::mt19937_64 random(testing::TestSeed());
  int instead_count = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<double> values = testing::RandomValues(random);
    const ScaledColumn scaled(values);
    if (!scaled.exists()) continue;
    // Near the values, far from them, or so far that no difference of two fits 64 bits.
    std::vector<std::int64_t> instead(scaled.integers().begin(), scaled.integers().end());
    const std::uint64_t mask = std::array<std::uint64_t, 3>{3, 0xffff, ~std::uint64_t{0}}[i % 3];
    for (std::int64_t& integer : instead) {
      integer = static_cast<std::int64_t>(random() & mask);
    }
    const EncodedVector own = EncodeValues(values);
    const EncodedVector other = EncodeIntegers(instead);
    const EncodedChoice choice =
        EncodeCheaper(values, scaled.integers(), scaled.divisor_exponent(), instead);
    ASSERT_EQ(choice.is_instead, EncodedBytes(other) < EncodedBytes(own));
    ASSERT_EQ(EncodedBytes(choice.vector), std::min(EncodedBytes(own), EncodedBytes(other)));
    instead_count += choice.is_instead ? 1 : 0;
    if (choice.is_instead) {
      EXPECT_EQ(*DecodeIntegers(choice.vector, instead.size()), instead);
    } else {
      const std::vector<double> decoded = *DecodeValues(choice.vector, values.size());
      EXPECT_EQ(std::memcmp(decoded.data(), values.data(), 8 * values.size()), 0);
    }
  }
  EXPECT_GT(instead_count, 0);
}

TEST(VectorCodecTest, DecodesIntoGivenMemory) {
  const EncodedVector encoded = EncodeValues(std::vector<double>{0.5, 0.25, 4});
  std::vector<double> values(3);
  ASSERT_TRUE(DecodeValuesInto(encoded, values).ok());
  EXPECT_EQ(values, (std::vector<double>{0.5, 0.25, 4}));
}

}  // namespace
}  // namespace stepwell
