#include "server/token_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/token_text.h"

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
  EXPECT_NE(MakeFileToken(), MakeFileToken());
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
      {"another", "Bearer " + MakeFileToken(), false},
      {"basic's name", "Basic " + absl::Base64Escape(token + ":"), false},
      {"basic without a colon", "Basic " + absl::Base64Escape(token), false},
      {"basic without base64", "Basic ???", false},
  };
  for (const auto& row : rows)
    EXPECT_EQ((*guard)->Identify(row.authorization).ok(), row.is_allowed) << row.name;
}

TEST_F(TokenGuardTest, RefusesAFileThatIsNoSecret) {
  Write(MakeFileToken(), 0640);
  EXPECT_THAT(Refusal(), HasSubstr("mode 0600 is expected"));
  Write("short\n");
  EXPECT_THAT(Refusal(), HasSubstr("a token of 32 to 512 bytes"));
}

TEST_F(TokenGuardTest, AnotherTokenCountsAndTheOldOneEnds) {
  const auto guard = TokenGuard::Open(path_, clock_);
  ASSERT_TRUE(guard.ok());
  const std::string first = "Bearer " + Token();
  const std::string second = MakeFileToken();
  Write(second + "\n");
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE((*guard)->Identify(first).ok());
  EXPECT_TRUE((*guard)->Identify("Bearer " + second).ok());
  unlink(path_.c_str());
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE((*guard)->Identify("Bearer " + second).ok()) << "gone";
}

// One that the database tells of.
TokenRecord RecordOf(const NewToken& token, std::vector<std::string> grants = {"read:vision"}) {
  return {.id = token.id, .digest = token.digest, .name = "ci", .grants = std::move(grants)};
}

class LearnedTokensTest : public TokenGuardTest {
 protected:
  LearnedTokensTest() : guard_(*TokenGuard::Open(path_, clock_)) {}
  void Learn(const std::vector<TokenRecord>& living) { guard_->Learn(living, clock_.Monotonic()); }
  absl::StatusCode Shown(const std::string& text) {
    return guard_->Identify("Bearer " + text).status().code();
  }

  const std::shared_ptr<TokenGuard> guard_;
  const NewToken token_ = MakeToken();
};

// One that a certificate opens.
TokenRecord GivenTo(const std::string& certificate, const std::string& id,
                    std::vector<std::string> grants = {"read:vision"}) {
  TokenRecord record{.id = id, .name = "agent", .grants = std::move(grants)};
  record.certificate = certificate;
  return record;
}

TEST_F(LearnedTokensTest, ACertificatesNameOpensWhatIsGivenToItAndNoSecretDoes) {
  Learn({GivenTo("dns:a.lab", "00000000000a"), GivenTo("cn:b", "00000000000b"), RecordOf(token_)});
  const auto code = [&](const std::vector<std::string>& names) {
    return guard_->IdentifyCertificate(names).status().code();
  };
  const auto caller = guard_->IdentifyCertificate({"cn:x", "dns:a.lab"});
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ((*caller)->id, "00000000000a");
  EXPECT_EQ(guard_->TakeUsed().size(), 1u) << "it was used";
  EXPECT_EQ(code({}), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code({"cn:x"}), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code({"cn:b", "dns:a.lab"}), absl::StatusCode::kUnauthenticated) << "which?";
  EXPECT_EQ(Shown("stepwell_00000000000a_" + std::string(64, '0')),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Shown("stepwell_00000000000a_"), absl::StatusCode::kUnauthenticated);
  clock_.Advance(TokenGuard::kMemory + absl::Seconds(1));
  EXPECT_EQ(code({"dns:a.lab"}), absl::StatusCode::kUnavailable) << "the database is silent";
  Learn({GivenTo("dns:a.lab", "00000000000a", {"admin"}), RecordOf(token_)});
  EXPECT_TRUE((*caller)->has_ended) << "other grants";
  EXPECT_TRUE(guard_->IdentifyCertificate({"dns:a.lab"}).value()->grants.admin());
  guard_->EndNow("00000000000a");
  EXPECT_EQ(code({"dns:a.lab"}), absl::StatusCode::kUnauthenticated);
}

TEST_F(LearnedTokensTest, WhatIsGivenToACertificateExpires) {
  TokenRecord record = GivenTo("dns:a.lab", "00000000000a");
  record.expires_time_us = absl::ToUnixMicros(clock_.Now() + absl::Seconds(2));
  Learn({record});
  const auto caller = guard_->IdentifyCertificate({"dns:a.lab"});
  ASSERT_TRUE(caller.ok()) << caller.status();
  const std::string inside = guard_->InsideAuthorization(**caller);
  EXPECT_EQ(*guard_->Identify(inside), *caller);
  EXPECT_FALSE(guard_->Identify(inside + "0").ok());
  std::string another = inside;
  another[10] = another[10] == '0' ? '1' : '0';
  EXPECT_FALSE(guard_->Identify(another).ok());
  EXPECT_FALSE(guard_->Identify("Bearer " + inside).ok());
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(guard_->IdentifyCertificate({"dns:a.lab"}).status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(guard_->Identify(inside).ok());
  EXPECT_TRUE((*caller)->has_ended);
}

TEST_F(LearnedTokensTest, IsWhoItSaysWithItsGrantsAndNobodyElse) {
  Learn({RecordOf(token_)});
  const auto caller = guard_->Identify("Bearer " + token_.text);
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ((*caller)->id, token_.id);
  EXPECT_TRUE((*caller)->grants.Reads("vision"));
  EXPECT_FALSE((*caller)->grants.admin());
  std::string other = token_.text;
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_EQ(Shown(other), absl::StatusCode::kUnauthenticated) << "another secret";
  EXPECT_EQ(Shown(MakeToken().text), absl::StatusCode::kUnauthenticated) << "another id";
  EXPECT_EQ(Shown("stepwell_" + token_.id + "_" + token_.digest),
            absl::StatusCode::kUnauthenticated)
      << "what the database keeps opens nothing";
}

TEST_F(LearnedTokensTest, NobodyIsLetInByWhatTheDatabaseDidNotConfirmForFiveSeconds) {
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kUnavailable) << "it may be one";
  Learn({RecordOf(token_)});
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kOk);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Shown(Token()), absl::StatusCode::kOk) << "the file's needs no database";
  guard_->Confirm(clock_.Monotonic());
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kOk);
}

TEST_F(LearnedTokensTest, EndsWhereItIsRevokedOrExpiresOrLeavesItsFile) {
  TokenRecord expiring = RecordOf(MakeToken());
  expiring.expires_time_us = absl::ToUnixMicros(clock_.Now() + absl::Seconds(3));
  Learn({RecordOf(token_), expiring});
  const Caller revoked = *guard_->Identify("Bearer " + token_.text);
  const Caller admin = *guard_->Identify("Bearer " + Token());
  Learn({expiring});
  EXPECT_TRUE(HasEnded(revoked));
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(guard_->ended_count(), 1);
  clock_.Advance(absl::Seconds(3));
  guard_->LookAround();
  EXPECT_EQ(guard_->ended_count(), 2) << "nobody showed it, and it has expired";
  EXPECT_FALSE(HasEnded(admin));
  Write(MakeFileToken());
  clock_.Advance(absl::Seconds(1));
  guard_->LookAround();
  EXPECT_TRUE(HasEnded(admin));
}

TEST_F(LearnedTokensTest, OneThatExpiresIsRefusedFromThatMomentOn) {
  TokenRecord expiring = RecordOf(token_);
  expiring.expires_time_us = absl::ToUnixMicros(clock_.Now() + absl::Seconds(3));
  Learn({expiring});
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kOk);
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kUnauthenticated);
}

// A wall clock that jumped, and was set right.
TEST_F(LearnedTokensTest, AClockThatWentForwardAndBackEndsCallsAndNoToken) {
  TokenRecord expiring = RecordOf(token_);
  // As it looks to a clock that is ahead, and by the time of the database to one that is right.
  const std::int64_t now_us = absl::ToUnixMicros(clock_.Now());
  expiring.expires_time_us = now_us + 3'000'000;
  Learn({expiring});
  const Caller before = *guard_->Identify("Bearer " + token_.text);
  clock_.Advance(absl::Seconds(3));
  guard_->LookAround();
  EXPECT_TRUE(HasEnded(before));
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kUnauthenticated);
  clock_.Advance(absl::Seconds(-3));
  guard_->LookAround();
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kOk);
  EXPECT_TRUE(HasEnded(before)) << "never taken back";
}

TEST_F(LearnedTokensTest, WhatEndedByAClockIsLearnedAnew) {
  TokenRecord expiring = RecordOf(token_);
  const std::int64_t now_us = absl::ToUnixMicros(clock_.Now());
  expiring.expires_time_us = now_us + 3'000'000;
  Learn({expiring});
  clock_.Advance(absl::Seconds(3));
  guard_->LookAround();
  clock_.Advance(absl::Seconds(-3));
  Learn({expiring});
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kOk);
}

TEST_F(LearnedTokensTest, CallsGoOnWhereATokenIsLearnedAgain) {
  Learn({RecordOf(token_)});
  const Caller caller = *guard_->Identify("Bearer " + token_.text);
  Learn({RecordOf(MakeToken()), RecordOf(token_)});
  EXPECT_FALSE(HasEnded(caller));
  EXPECT_EQ(*guard_->Identify("Bearer " + token_.text), caller);
}

TEST_F(LearnedTokensTest, WhatANewerMasterGrantsOpensNothingHere) {
  Learn({RecordOf(token_, {"teleport:vision"})});
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kUnauthenticated);
}

TEST_F(LearnedTokensTest, TellsOnceWhichWereUsed) {
  Learn({RecordOf(token_), RecordOf(MakeToken())});
  EXPECT_TRUE(guard_->TakeUsed().empty());
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kOk);
  EXPECT_EQ(Shown(Token()), absl::StatusCode::kOk);
  const auto used = guard_->TakeUsed();
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used[0], std::make_pair(token_.id, absl::ToUnixMicros(clock_.Now())));
  EXPECT_TRUE(guard_->TakeUsed().empty());
}

}  // namespace
}  // namespace stepwell
