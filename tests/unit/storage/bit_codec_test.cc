#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "storage/bit_reader.h"
#include "storage/bit_writer.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

TEST(BitWriterTest, PacksHighestBitFirst) {
  BitWriter writer(/*width=*/3, /*count=*/3);
  for (const std::uint64_t value : {5, 2, 7}) writer.Append(value);
  const BitString bits = std::move(writer).Take();
  EXPECT_EQ(bits.bit_count, 9U);
  EXPECT_EQ(bits.bytes, std::string("\xab\x80", 2));  // 101 010 11|1
}

TEST(BitReaderTest, ReadsBackEveryWidth) {
  std::mt19937_64 random(testing::TestSeed());
  for (int width = 0; width <= 63; ++width) {
    for (std::size_t count = 0; count <= 70; ++count) {
      std::vector<std::uint64_t> values(count);
      for (std::uint64_t& value : values) value = width == 0 ? 0 : random() >> (64 - width);
      BitWriter writer(width, count);
      for (const std::uint64_t value : values) writer.Append(value);
      const BitString bits = std::move(writer).Take();
      // At once, and some of them after others.
      for (const std::size_t one_by_one : {std::size_t{0}, count / 2, count}) {
        BitWriter other(width, count);
        for (std::size_t i = 0; i < one_by_one; ++i) other.Append(values[i]);
        other.AppendAll((count - one_by_one) / 2,
                        [&](std::size_t i) { return values[one_by_one + i]; });
        const std::size_t done = one_by_one + (count - one_by_one) / 2;
        other.AppendAll(count - done, [&](std::size_t i) { return values[done + i]; });
        ASSERT_EQ(std::move(other).Take(), bits) << "width " << width << " count " << count;
      }
      const BitReader reader(bits, width);
      ASSERT_TRUE(reader.Holds(count)) << width << " " << count;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(reader.Read(i), values[i]) << "width " << width << " index " << i;
      }
    }
  }
}

TEST(BitReaderTest, HoldsExactlyTheClaimedLength) {
  const BitString bits{.bytes = std::string(2, '\0'), .bit_count = 14};
  EXPECT_TRUE(BitReader(bits, 7).Holds(2));
  EXPECT_FALSE(BitReader(bits, 7).Holds(1));
  EXPECT_FALSE(BitReader(bits, 7).Holds(3));
  EXPECT_FALSE(BitReader({.bytes = "", .bit_count = 14}, 7).Holds(2));
}

}  // namespace
}  // namespace stepwell
