#include "server/token_text.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

TEST(TokenTextTest, IsMadeTakenApartAndFoundAgainByItsDigest) {
  const NewToken token = MakeToken();
  const auto parts = SplitToken(token.text);
  ASSERT_TRUE(parts.has_value()) << token.text;
  EXPECT_EQ(parts->id, token.id);
  EXPECT_EQ(token.text, absl::StrCat("stepwell_", token.id, "_", std::string(parts->secret)));
  EXPECT_EQ(TokenDigest(parts->secret), token.digest);
  EXPECT_NE(MakeToken().id, token.id);
  EXPECT_NE(MakeToken().digest, token.digest);
}

TEST(TokenTextTest, IsNoTokenInAnyOtherForm) {
  const std::string text = MakeToken().text;
  for (const std::string& other :
       {std::string(), std::string("stepwell_"), text.substr(1), text + "0",
        text.substr(0, text.size() - 1), "Stepwell" + text.substr(8), MakeFileToken(),
        text.substr(0, 9) + "G" + text.substr(10), text.substr(0, 21) + "-" + text.substr(22),
        text.substr(0, text.size() - 1) + "A", text.substr(0, text.size() - 1) + '\0'}) {
    EXPECT_FALSE(SplitToken(other).has_value()) << other;
  }
}

TEST(TokenTextTest, TravelsInAHeaderWhateverItsBytes) {
  const std::string odd("stepwell admin\xff\x01: ä", 21);
  EXPECT_EQ(ShownToken(HeaderOf(odd)), odd);
  for (const char byte : HeaderOf(odd)) EXPECT_TRUE(byte >= ' ' && byte <= '~');
}

TEST(TokenTextTest, ComparesWhole) {
  EXPECT_TRUE(IsSameDigest("abc", "abc"));
  EXPECT_FALSE(IsSameDigest("abc", "abd"));
  EXPECT_FALSE(IsSameDigest("abc", "ab"));
  EXPECT_FALSE(IsSameDigest("", "ab"));
}

}  // namespace
}  // namespace stepwell
