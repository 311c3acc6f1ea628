#include "server/token_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class TokenGuardTest : public ::testing::Test {
 protected:
  ~TokenGuardTest() override { unlink(path_.c_str()); }
  std::string Token() const {
    std::ifstream file(path_);
    std::string token;
    file >> token;
    return token;
  }
  void Write(const std::string& text, mode_t mode = 0600) const {
    const std::string beside = path_ + ".new";
    std::ofstream(beside) << text;
    ASSERT_EQ(chmod(beside.c_str(), mode), 0);
    ASSERT_EQ(std::rename(beside.c_str(), path_.c_str()), 0);
  }
  std::string Refusal() const {
    return std::string(TokenGuard::Open(path_, clock_).status().message());
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "token-", getpid());
  FakeClock clock_;
};

TEST_F(TokenGuardTest, MakesAFileForItsOwnerAloneAndTakesItsTokenOnly) {
  const auto guard = TokenGuard::Open(path_, clock_);
  ASSERT_TRUE(guard.ok()) << guard.status();
  struct stat found {};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  const std::string token = Token();
  EXPECT_THAT(token, StartsWith("stepwell_admin_"));
  EXPECT_NE(MakeToken(), MakeToken());
  const struct {
    const char* name;
    std::string authorization;
    bool is_allowed;
  } rows[] = {
      {"bearer", "Bearer " + token, true},
      {"any case", "bearer " + token, true},
      {"basic", "Basic " + absl::Base64Escape("me:" + token), true},
      {"nothing", "", false},
      {"no form", token, false},
      {"empty", "Bearer ", false},
      {"another form", "Digest " + token, false},
      {"shorter", "Bearer " + token.substr(0, token.size() - 1), false},
      {"longer", "Bearer " + token + "0", false},
      {"another", "Bearer " + MakeToken(), false},
      {"basic's name", "Basic " + absl::Base64Escape(token + ":"), false},
      {"basic without a colon", "Basic " + absl::Base64Escape(token), false},
      {"basic without base64", "Basic ???", false},
  };
  for (const auto& row : rows)
    EXPECT_EQ((*guard)->Allows(row.authorization), row.is_allowed) << row.name;
}

TEST_F(TokenGuardTest, RefusesAFileThatIsNoSecret) {
  Write(MakeToken(), 0640);
  EXPECT_THAT(Refusal(), HasSubstr("mode 0600 is expected"));
  Write("short\n");
  EXPECT_THAT(Refusal(), HasSubstr("a token of 32 to 512 bytes"));
}

TEST_F(TokenGuardTest, AnotherTokenCountsAndTheOldOneEnds) {
  const auto guard = TokenGuard::Open(path_, clock_);
  ASSERT_TRUE(guard.ok());
  const std::string first = "Bearer " + Token();
  const std::string second = MakeToken();
  Write(second + "\n");
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE((*guard)->Allows(first));
  EXPECT_TRUE((*guard)->Allows("Bearer " + second));
  unlink(path_.c_str());
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE((*guard)->Allows("Bearer " + second)) << "gone";
}

}  // namespace
}  // namespace stepwell
