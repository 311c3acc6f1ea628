#include "server/ended_tokens.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/token_text.h"

namespace stepwell {
namespace {

TEST(EndedTokensTest, AreKnownByTheirSecretsAlone) {
  EndedTokens ended;
  const NewToken token = MakeToken();
  const NewToken other = MakeToken();
  ended.Note(token.id, token.digest);
  ended.Note("0123456789ab", "");
  EXPECT_TRUE(ended.Knows(token.id, token.digest));
  EXPECT_FALSE(ended.Knows(token.id, other.digest));
  EXPECT_FALSE(ended.Knows(other.id, token.digest));
  EXPECT_FALSE(ended.Knows(token.id, ""));
  EXPECT_FALSE(ended.Knows("0123456789ab", "")) << "what only a certificate opens";
}

TEST(EndedTokensTest, TheNewestAreKept) {
  EndedTokens ended(3);
  for (int i = 0; i < 5; ++i) ended.Note(absl::StrCat(i), absl::StrCat("digest", i));
  ended.Note("4", "another");
  EXPECT_EQ(ended.count(), 3u);
  EXPECT_FALSE(ended.Knows("1", "digest1"));
  EXPECT_TRUE(ended.Knows("2", "digest2"));
  EXPECT_FALSE(ended.Knows("4", "digest4"));
  EXPECT_TRUE(ended.Knows("4", "another"));
}

TEST(EndedTokensTest, ThoseThatWereFetchedPushOutNoOthers) {
  EndedTokens ended(3);
  ended.Note("person's", "digest");
  for (int i = 0; i < 100; ++i) {
    ended.Note(absl::StrCat(i), "of an hour", EndedTokens::Kind::kFetched);
  }
  EXPECT_TRUE(ended.Knows("person's", "digest"));
  EXPECT_TRUE(ended.Knows("99", "of an hour"));
  EXPECT_FALSE(ended.Knows("96", "of an hour"));
  EXPECT_EQ(ended.count(), 4u);
}

TEST(EndedTokensTest, ARefusalOfOneIsToldFromOthersHereAndByNobodyElse) {
  const absl::Status ended = EndedTokenRefusal("no such token");
  const absl::Status wrong = absl::UnauthenticatedError("no such token");
  EXPECT_TRUE(IsEndedTokenRefusal(ended));
  EXPECT_FALSE(IsEndedTokenRefusal(wrong));
  EXPECT_EQ(ended.code(), wrong.code());
  EXPECT_EQ(ended.message(), wrong.message());
}

}  // namespace
}  // namespace stepwell
