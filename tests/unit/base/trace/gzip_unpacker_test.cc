#include "base/trace/gzip_unpacker.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

std::string Zipped(const std::string& text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

struct Unzipped {
  absl::Status status;
  std::string text;
  bool at_end = false;
};

// Fed in pieces of 1 to `piece_max` bytes.
Unzipped Unzip(const std::string& bytes, std::mt19937_64& random, std::size_t piece_max,
               std::int64_t unpacked_max = GzipUnpacker::kUnpackedMax) {
  Unzipped result;
  GzipUnpacker unpacker(
      [&](std::string_view piece) {
        result.text += piece;
        return absl::OkStatus();
      },
      unpacked_max);
  for (std::size_t at = 0; at < bytes.size() && result.status.ok();) {
    const std::size_t size = std::min(1 + random() % piece_max, bytes.size() - at);
    result.status = unpacker.Feed(std::string_view(bytes).substr(at, size));
    at += size;
  }
  result.at_end = unpacker.at_end();
  return result;
}

TEST(GzipUnpackerTest, WhatWasPackedComesOutWhateverThePieces) {
  std::mt19937_64 random(testing::TestSeed());
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>('a' + random() % 4);
  for (const std::size_t piece_max : {1u, 2u, 1000u, 1'000'000u}) {
    for (const bool zipped : {true, false}) {
      const Unzipped result = Unzip(zipped ? Zipped(text) : text, random, piece_max);
      EXPECT_TRUE(result.status.ok()) << result.status;
      EXPECT_TRUE(result.text == text);
      EXPECT_TRUE(result.at_end);
    }
  }
  const Unzipped two = Unzip(Zipped("one ") + Zipped("two"), random, 7);
  EXPECT_EQ(two.text, "one two");
  EXPECT_TRUE(two.at_end);
}

TEST(GzipUnpackerTest, WhatIsCutGivesWhatItHas) {
  std::mt19937_64 random(testing::TestSeed());
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>('a' + random() % 26);
  const std::string zipped = Zipped(text);
  const Unzipped result = Unzip(zipped.substr(0, zipped.size() / 2), random, 1000);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_FALSE(result.at_end);
  EXPECT_GT(result.text.size(), text.size() / 3);
  EXPECT_EQ(text.substr(0, result.text.size()), result.text);
}

TEST(GzipUnpackerTest, DamageAndBombsAreRefused) {
  std::mt19937_64 random(testing::TestSeed());
  std::string damaged = Zipped(std::string(10'000, 'x') + "y");
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  EXPECT_FALSE(Unzip(damaged, random, 100).status.ok());
  const Unzipped bomb = Unzip(Zipped(std::string(4 << 20, '\0')), random, 1000, 1 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(bomb.status)) << bomb.status;
  EXPECT_LE(bomb.text.size(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace stepwell
