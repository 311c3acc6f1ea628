#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

TEST(Crc32cTest, KnowsTheCheckValuesOfRfc3720) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, ExtendsInPieces) {
  const std::string text = "a chunk that arrives in two pieces";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto first = ExtendCrc32c(0, text.data(), cut);
    EXPECT_EQ(ExtendCrc32c(first, text.data() + cut, text.size() - cut), Crc32c(text));
  }
}

TEST(Crc32cTest, AChunksChecksumCoversSequenceAndTime) {
  const auto crc = ChunkCrc32c(7, 1'000'000, "body");
  EXPECT_NE(crc, ChunkCrc32c(8, 1'000'000, "body"));
  EXPECT_NE(crc, ChunkCrc32c(7, 1'000'001, "body"));
  EXPECT_NE(crc, ChunkCrc32c(7, 1'000'000, "bodx"));
}

}  // namespace
}  // namespace stepwell
