#include "storage/wide_decode.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "storage/bit_writer.h"
#include "storage/vector_codec.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

std::int64_t AnyInteger(std::mt19937_64& random) {
  const auto bits = static_cast<std::int64_t>(random());
  return bits >> random() % 64;
}

// Of a form whose integers follow each other, with anything in its columns: some overflow.
EncodedVector AnyVector(std::mt19937_64& random, std::size_t count) {
  EncodedVector encoded;
  encoded.form = std::array{Form::kFrame, Form::kDelta, Form::kLinear}[random() % 3];
  encoded.width = static_cast<std::int16_t>(random() % 3 == 0 ? random() % 64 : random() % 30);
  encoded.base = AnyInteger(random);
  encoded.factor = random() % 2 == 0 ? 1 : AnyInteger(random) >> 20;
  encoded.divisor_exponent =
      static_cast<std::int16_t>(random() % 3 == 0 ? 0 : static_cast<int>(random() % 80) - 57);
  if (encoded.form != Form::kFrame) {
    encoded.dictionary = {AnyInteger(random) >> random() % 40};
    if (encoded.form == Form::kDelta) --count;
  }
  BitWriter writer(encoded.width, count);
  for (std::size_t i = 0; i < count; ++i) {
    writer.Append(encoded.width == 0 ? 0 : random() >> (64 - encoded.width));
  }
  encoded.bits = std::move(writer).Take();
  return encoded;
}

template <typename Number>
std::vector<std::uint64_t> Words(const std::vector<Number>& numbers) {
  std::vector<std::uint64_t> words(numbers.size());
  std::memcpy(words.data(), numbers.data(), numbers.size() * sizeof(Number));
  return words;
}

// Of both ways the same status, and the same bits where it is good.
template <typename Number, typename Decode>
bool ExpectBothWays(std::size_t count, const Decode& decode) {
  std::vector<Number> plain(count, Number{7});
  std::vector<Number> wide(count, Number{8});
  const absl::Status plain_status = decode(std::span(plain), Lanes::kOne);
  const absl::Status wide_status = decode(std::span(wide), WidestLanes());
  EXPECT_EQ(wide_status, plain_status);
  if (!plain_status.ok()) return false;
  EXPECT_EQ(Words(wide), Words(plain));
  return true;
}

TEST(WideDecodeTest, ReadsWhatOneByOneReads) {
  std::mt19937_64 random(testing::TestSeed());
  int read = 0, refused = 0;
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    const std::size_t count = 1 + random() % (random() % 8 == 0 ? 700 : 70);
    EncodedVector encoded = AnyVector(random, count);
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ": form " << static_cast<int>(encoded.form) << ", width "
                 << encoded.width << ", " << count << " samples");
    const bool ok = ExpectBothWays<double>(count, [&](std::span<double> values, Lanes lanes) {
      return DecodeValuesInto(encoded, values, lanes);
    });
    ++(ok ? read : refused);
    const std::size_t first = random() % count;
    ExpectBothWays<double>(1 + random() % (count - first),
                           [&](std::span<double> values, Lanes lanes) {
                             return DecodePartInto(encoded, count, first, values, lanes);
                           });
    encoded.divisor_exponent = 0;
    ExpectBothWays<std::int64_t>(count, [&](std::span<std::int64_t> integers, Lanes lanes) {
      return DecodeIntegersInto(encoded, integers, lanes);
    });
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

// Every width, of as many integers as fill blocks and some more or fewer, up to the last byte of memory that is theirs.
TEST(WideDecodeTest, ReadsEachWidthToItsEnd) {
  std::mt19937_64 random(testing::TestSeed());
  for (int width = 0; width <= 63; ++width) {
    for (std::size_t count = 0; count <= 70; ++count) {
      SCOPED_TRACE(::testing::Message() << count << " of width " << width);
      std::vector<std::int64_t> integers(count);
      BitWriter writer(width, count);
      for (std::int64_t& integer : integers) {
        integer = width == 0 ? 0 : static_cast<std::int64_t>(random() >> (64 - width));
        writer.Append(static_cast<std::uint64_t>(integer));
      }
      EncodedVector encoded;
      encoded.width = static_cast<std::int16_t>(width);
      encoded.bits = std::move(writer).Take();
      encoded.bits.bytes.shrink_to_fit();
      std::vector<std::int64_t> decoded(count);
      ASSERT_TRUE(DecodeIntegersInto(encoded, decoded).ok());
      ASSERT_EQ(decoded, integers);
    }
  }
}

// What is between two doubles is rounded as a cast rounds it.
TEST(WideDecodeTest, MakesOfEachIntegerTheDoubleThatACastMakes) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 20000; ++round) {
    EncodedVector encoded;
    encoded.width = 1;
    encoded.base = AnyInteger(random);
    // The last bits that a double of that size does not hold, around the middle between two.
    if (round % 2 == 0) encoded.base = (encoded.base & ~INT64_C(0x3ff)) | (0x1ff + round % 4);
    if (encoded.base == std::numeric_limits<std::int64_t>::max()) continue;
    BitWriter writer(1, 8);
    for (std::uint64_t i = 0; i < 8; ++i) writer.Append(i % 2);
    encoded.bits = std::move(writer).Take();
    std::vector<double> values(8);
    ASSERT_TRUE(DecodeValuesInto(encoded, values).ok());
    for (std::size_t i = 0; i < 8; ++i) {
      const std::int64_t k = encoded.base + static_cast<std::int64_t>(i % 2);
      ASSERT_EQ(values[i], static_cast<double>(k)) << k;
      ASSERT_FALSE(k == 0 && std::signbit(values[i]));
    }
  }
}

}  // namespace
}  // namespace stepwell
