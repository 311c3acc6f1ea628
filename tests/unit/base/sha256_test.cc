#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"

namespace stepwell {
namespace {

std::string DigestOf(const std::string& text, std::size_t piece) {
  Sha256 sha;
  for (std::size_t at = 0; at < text.size(); at += piece) sha.Feed(text.substr(at, piece));
  return absl::BytesToHexString(sha.Finish());
}

// FIPS 180-4's own, and around the ends of blocks as sha256sum has them.
TEST(Sha256Test, IsThatOfTheStandardHoweverItComes) {
  const struct {
    std::string text;
    const char* digest;
  } rows[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {std::string(55, 'b'), "eb2c86e932179f4ba13fe8715a26124b77d6bad290b9b4c1cc140cf633300c19"},
      {std::string(56, 'b'), "a5fc6e203a4c2b657d0d153885932414b2ffc6a93f0f8bf8b3183315e5a7212c"},
      {std::string(63, 'b'), "94e419fabac7f930810f9636354042f8c1426d2f834d4ab65c93dc1e69326b13"},
      {std::string(64, 'b'), "a0fab1377f49a759b57f63318262ebe89fabfc990e8e93ceac2984561482b9d4"},
      {std::string(119, 'b'), "68297a9eb141ce16bbc0847da1c0c48e2858704feaa13993bde29f87a198a6e1"},
      {std::string(120, 'b'), "392add47fbaa8197a874ebe770a947a26dd6f2becce5f64688cc4d18c9da93bd"},
  };
  for (const auto& row : rows) {
    for (const std::size_t piece : {1U, 63U, 64U, 65U, 1000U}) {
      EXPECT_EQ(DigestOf(row.text, piece), row.digest) << row.text.size() << " by " << piece;
    }
  }
}

}  // namespace
}  // namespace stepwell
