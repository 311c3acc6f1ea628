// What tells a master that another one of its database has another token in its file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/token_guard.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TokenMakersTest : public ::testing::Test {
 protected:
  ~TokenMakersTest() override { unlink(path_.c_str()); }
  TokenRecord Fetched(const std::string& made_by, absl::Duration later) const {
    return {.id = "0123456789ab",
            .digest = std::string(32, 'd'),
            .name = "fetched",
            .grants = {"ingest:default/run"},
            .created_time_us = absl::ToUnixMicros(clock_.Now() + later),
            .expires_time_us = absl::ToUnixMicros(clock_.Now() + later + absl::Hours(1)),
            .made_by = made_by,
            .family = "0123456789ab"};
  }
  // What is logged as it learns of that one, in either way.
  std::string Said(const TokenRecord& token) {
    std::string all;
    for (const bool is_fetched : {false, true}) {
      const auto guard = *TokenGuard::Open(path_, clock_);
      ::testing::internal::CaptureStderr();
      for (int i = 0; i < 2; ++i) {
        is_fetched ? guard->LearnFetched({token}, clock_.Monotonic())
                   : guard->Learn({token}, clock_.Monotonic());
      }
      const std::string said = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(said.find("token_of_another_file"), said.rfind("token_of_another_file")) << said;
      if (!said.empty()) absl::StrAppend(&all, said, "|");
    }
    return all;
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "token-makers-", getpid());
  FakeClock clock_;
};

TEST_F(TokenMakersTest, WhatAnotherFilesTokenFetchesMeanwhileIsToldOnce) {
  EXPECT_TRUE((*TokenGuard::Open(path_, clock_))->has_made_file());
  EXPECT_FALSE((*TokenGuard::Open(path_, clock_))->has_made_file());
  const std::string said = Said(Fetched("admin:ba9876543210", absl::Minutes(2)));
  EXPECT_THAT(said, HasSubstr("token_of_another_file token=0123456789ab"));
  EXPECT_THAT(said, HasSubstr(path_));
  EXPECT_THAT(said, Not(HasSubstr(std::string(8, 'd')))) << "no digest";
}

TEST_F(TokenMakersTest, WhatTheFileItselfMadeAndWhatIsOlderIsNoReason) {
  const auto guard = *TokenGuard::Open(path_, clock_);
  std::string own;
  std::ifstream(path_) >> own;
  const auto admin = guard->IdentifyToken(own);
  ASSERT_TRUE(admin.ok()) << admin.status();
  EXPECT_THAT(Said(Fetched(TokenGuard::MakerOf(**admin), absl::Minutes(2))), IsEmpty());
  EXPECT_THAT(Said(Fetched("admin:ba9876543210", -absl::Minutes(1))), IsEmpty())
      << "of the token that was in the file before, perhaps";
  EXPECT_THAT(Said(Fetched("aaaaaaaaaaaa", absl::Minutes(2))), IsEmpty()) << "in the database";
}

}  // namespace
}  // namespace stepwell
