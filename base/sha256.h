// Sha256: the digest of bytes that come piece by piece (FIPS 180-4), by OpenSSL. Confined to one thread.
//
//   Sha256 sha;
//   sha.Feed(piece);  // ...
//   const std::string digest = sha.Finish();   // 32 bytes
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace stepwell {

class Sha256 {
 public:
  static constexpr std::size_t kDigestBytes = 32;

  Sha256();

  void Feed(std::string_view bytes);
  // Once, after the last Feed.
  std::string Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace stepwell
