// Sha256: the digest of bytes that come piece by piece (FIPS 180-4). Confined to one thread.
//
//   Sha256 sha;
//   sha.Feed(piece);  // ...
//   const std::string digest = sha.Finish();   // 32 bytes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell {

class Sha256 {
 public:
  static constexpr std::size_t kDigestBytes = 32;

  void Feed(std::string_view bytes);
  // Once, after the last Feed.
  std::string Finish();

 private:
  static constexpr std::size_t kBlockBytes = 64;

  void TakeBlock(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlockBytes> held_{};
  std::uint64_t byte_count_ = 0;
};

}  // namespace stepwell
