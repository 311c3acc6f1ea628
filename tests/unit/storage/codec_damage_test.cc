// What the decoder says to rows that no encoder wrote.
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/vector_codec.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/damaged_vectors.h"

namespace stepwell {
namespace {

BitString Bits(std::size_t bit_count, char fill = '\0') {
  return {.bytes = std::string((bit_count + 7) / 8, fill), .bit_count = bit_count};
}

TEST(CodecDamageTest, NamesWhatIsWrong) {
  const struct {
    std::string name;
    EncodedVector encoded;
    std::size_t sample_count;
    std::string message;
  } rows[] = {
      {"form", {.form = Form{7}}, 1, "vector of form 7: no such form of integers"},
      {"negative form", {.form = Form{-1}}, 1, "vector of form -1: no such form of integers"},
      {"count", {}, kVectorSamplesMax + 1, "1048577 samples, at most 1048576 are allowed"},
      {"absurd count", {}, SIZE_MAX, "at most 1048576 are allowed"},
      {"width 64", {.width = 64, .bits = Bits(64)}, 1, "width is 64, 0 to 63 are allowed"},
      {"negative width", {.width = -1}, 1, "width is -1, 0 to 63 are allowed"},
      {"divisor", {.divisor_exponent = 23}, 1, "divisor_exponent is 23, -1022 to 22 are allowed"},
      {"short", {.width = 7, .bits = Bits(13)}, 2, "bits has 13 bits in 2 bytes, 2 integers of 7"},
      {"long", {.width = 7, .bits = Bits(15)}, 2, "bits has 15 bits"},
      {"lying", {.width = 7, .bits = {.bytes = "", .bit_count = 14}}, 2, "14 bits in 0 bytes"},
      {"delta without lowest", {.form = Form::kDelta}, 2, "dictionary has 0 elements"},
      {"delta of nothing", {.form = Form::kDelta, .dictionary = {1}}, 0, "for 0 samples"},
      {"line without step", {.form = Form::kLinear}, 2, "dictionary has 0 elements, 1 is due"},
      {"raw", {.form = Form::kRaw, .raw = {1, 2}}, 3, "raw has 2 elements for 3 samples"},
      {"index",
       {.form = Form::kDictionary, .width = 2, .bits = Bits(8, '\x0c'), .dictionary = {1, 2, 3}},
       4,
       "index 3 of sample 2 is beyond a dictionary of 3"},
      {"no dictionary", {.form = Form::kDictionary}, 1, "beyond a dictionary of 0"},
      {"runs short",
       {.form = Form::kRuns, .width2 = 2, .bits2 = Bits(4)},
       3,
       "runs end at 2 of 3 samples"},
      {"runs long",
       {.form = Form::kRuns, .width2 = 2, .bits2 = Bits(4, '\x70')},
       3,
       "runs go beyond 3 samples"},
      {"run width", {.form = Form::kRuns, .width2 = 32}, 3, "width2 is 32, 0 to 31 are allowed"},
      {"more runs than samples", {.form = Form::kRuns, .width2 = 1, .bits2 = Bits(9)}, 8, "bits2"},
      {"presence", {.form = Form::kSparse, .bits2 = Bits(3)}, 4, "bits2 has 3 bits"},
      {"present",
       {.form = Form::kSparse, .width = 3, .bits2 = Bits(8, '\x03')},
       8,
       "bits has 0 bits in 0 bytes, 2 integers of 3 bits are due"},
      {"present behind the end",
       {.form = Form::kSparse, .bits2 = {.bytes = "\x01", .bit_count = 7}},
       7,
       "bits2 has ones behind its last bit"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto decoded = DecodeValues(row.encoded, row.sample_count);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(decoded.status().message()), ::testing::HasSubstr(row.message));
  }
}

// What PostgreSQL answers with "bigint out of range", and what it does not.
TEST(CodecDamageTest, RefusesIntegersThatOverflow) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const struct {
    std::string name;
    EncodedVector encoded;
    std::size_t sample_count;
    bool holds;
  } rows[] = {
      {"base", {.width = 1, .base = kMax, .bits = Bits(2, '\x40')}, 2, false},
      {"base, not reached", {.width = 1, .base = kMax, .bits = Bits(2)}, 2, true},
      {"product", {.width = 63, .base = -5, .factor = 3, .bits = Bits(63, '\x7f')}, 1, false},
      {"run",
       {.form = Form::kRuns,
        .width = 1,
        .width2 = 1,
        .base = kMax,
        .bits = Bits(1, '\x80'),
        .bits2 = Bits(1)},
       1,
       false},
      {"present",
       {.form = Form::kSparse,
        .width = 1,
        .base = kMax,
        .bits = Bits(1, '\x80'),
        .bits2 = Bits(2, '\x40')},
       2,
       false},
      {"sum of deltas",
       {.form = Form::kDelta, .base = kMax - 3, .factor = 2, .dictionary = {1}},
       3,
       false},
      {"sum of deltas, just", {.form = Form::kDelta, .base = kMax - 2, .dictionary = {1}}, 3, true},
      {"sums that come back",
       {.form = Form::kDelta,
        .width = 63,
        .base = -1,
        .bits = {std::string(16, '\0'), 126},
        .dictionary = {INT64_MIN}},
       3,
       false},
      {"deltas that come back",
       {.form = Form::kDelta,
        .width = 1,
        .base = kMax,
        .bits = Bits(2, '\x40'),
        .dictionary = {-1}},
       3,
       true},
      {"end of a line", {.form = Form::kLinear, .base = kMax - 1, .dictionary = {1}}, 3, false},
      {"end of a line, just",
       {.form = Form::kLinear, .base = kMax - 2, .dictionary = {1}},
       3,
       true},
      {"beside a line",
       {.form = Form::kLinear,
        .width = 1,
        .base = kMax - 2,
        .bits = Bits(3, '\x20'),
        .dictionary = {1}},
       3,
       false},
      {"beside a line, before its end",
       {.form = Form::kLinear,
        .width = 1,
        .base = kMax - 2,
        .bits = Bits(3, '\x40'),
        .dictionary = {1}},
       3,
       true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto decoded = DecodeIntegers(row.encoded, row.sample_count);
    EXPECT_EQ(decoded.ok(), row.holds) << decoded.status();
    if (!row.holds) {
      EXPECT_THAT(std::string(decoded.status().message()),
                  ::testing::HasSubstr("does not fit 63 bits and a sign"));
    }
  }
}

TEST(CodecDamageTest, RefusesValueFormsForIntegers) {
  EXPECT_EQ(DecodeIntegers({.form = Form::kRaw, .raw = {1}}, 1).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeIntegers({.divisor_exponent = 1}, 1).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeIntegers({.form = Form::kDictionary, .raw = {1}}, 1).status().code(),
            absl::StatusCode::kDataLoss);
}

// No crash, no sanitizer report, and a vector of the asked length or kDataLoss.
TEST(CodecDamageTest, SurvivesAnyMutation) {
  std::mt19937_64 random(testing::TestSeed());
  std::size_t refused = 0;
  constexpr std::size_t kRounds = 100000;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::vector<double> values = testing::RandomValues(random);
    EncodedVector encoded =
        random() % 4 == 0 ? EncodeIntegers(testing::RandomIntegers(random)) : EncodeValues(values);
    std::size_t sample_count = values.size();
    for (std::uint64_t times = 1 + random() % 3; times > 0; --times) {
      testing::Damage(random, encoded, sample_count);
    }
    const auto decoded = DecodeValues(encoded, sample_count);
    const auto integers = DecodeIntegers(encoded, sample_count);
    if (decoded.ok()) {
      ASSERT_EQ(decoded->size(), sample_count);
    } else {
      ASSERT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
      ++refused;
    }
    ASSERT_TRUE(!integers.ok() || integers->size() == sample_count);
  }
  EXPECT_GT(refused, kRounds / 4);
}

}  // namespace
}  // namespace stepwell
