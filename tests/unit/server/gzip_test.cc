#include "server/http/gzip.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(GzipTest, WhatGoesInComesOut) {
  for (const std::size_t bytes : {0U, 1U, 1000U, 65536U, 300'000U}) {
    std::string plain(bytes, 'x');
    for (std::size_t i = 0; i < bytes; i += 7) plain[i] = static_cast<char>(i * 31);
    const auto back = Gunzip(Gzip(plain), bytes);
    ASSERT_TRUE(back.ok()) << bytes << ": " << back.status();
    EXPECT_EQ(*back, plain);
  }
}

TEST(GzipTest, ABombIsRefusedBeforeItIsUnpacked) {
  const std::string bomb = Gzip(std::string(64 << 20, '\0'));
  EXPECT_LT(bomb.size(), 400'000U);
  EXPECT_EQ(Gunzip(bomb, 4 << 20).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Gunzip(Gzip("four"), 3).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GzipTest, WhatIsDamagedIsRefused) {
  const std::string packed = Gzip("a text of some words");
  std::string bent = packed;
  bent[bent.size() - 6] = static_cast<char>(bent[bent.size() - 6] ^ 1);  // of the checksum
  for (const std::string& bad : {std::string(), std::string("no gzip"), bent, packed + "more",
                                 packed.substr(0, packed.size() - 1)}) {
    EXPECT_EQ(Gunzip(bad, 1000).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace stepwell
