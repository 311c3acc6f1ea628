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

TEST_F(LearnedTokensTest, WhatEndedIsToldFromGuessesByItsSecretAlone) {
  const auto is_ended = [this](const std::string& text) {
    const absl::Status status = guard_->IdentifyToken(text).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    return IsEndedTokenRefusal(status);
  };
  const auto with_other_secret = [](const NewToken& token) {
    return absl::StrCat("stepwell_", token.id, "_", MakeSecret());
  };
  const NewToken revoked = MakeToken();
  const NewToken expiring = MakeToken();
  const NewToken before = MakeToken();
  TokenRecord expires = RecordOf(expiring);
  expires.expires_time_us = absl::ToUnixMicros(clock_.Now() + absl::Seconds(1));
  Learn({RecordOf(token_), RecordOf(revoked), expires});
  guard_->LearnEnded({RecordOf(before)});
  guard_->EndNow(revoked.id);
  clock_.Advance(absl::Seconds(2));
  for (const NewToken& each : {revoked, expiring, before}) {
    EXPECT_TRUE(is_ended(each.text));
    EXPECT_FALSE(is_ended(with_other_secret(each)));
  }
  // Another master revoked it, and this one learns that it lives no more.
  Learn({});
  EXPECT_TRUE(is_ended(token_.text));
  EXPECT_TRUE(is_ended(expiring.text));
  EXPECT_FALSE(is_ended(with_other_secret(token_)));
  EXPECT_FALSE(is_ended(MakeToken().text));
  // Nobody can tell by the words.
  EXPECT_EQ(guard_->IdentifyToken(revoked.text).status().message(),
            guard_->IdentifyToken(MakeToken().text).status().message());
  // The file's own.
  const std::string admin = Token();
  EXPECT_TRUE(guard_->IdentifyToken(admin).ok());
  Write(MakeFileToken());
  clock_.Advance(absl::Seconds(3));
  EXPECT_TRUE(is_ended(admin));
  EXPECT_FALSE(is_ended(MakeFileToken()));
  // And the one before it, once another takes its place.
  const std::string second = Token();
  Write(MakeFileToken());
  clock_.Advance(absl::Seconds(3));
  EXPECT_TRUE(is_ended(second));
  EXPECT_TRUE(is_ended(admin));
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

class FetchedTokensTest : public LearnedTokensTest {
 protected:
  // Lives for an hour.
  TokenRecord Fetched(const NewToken& token, const std::string& made_by,
                      const std::string& family = "") {
    TokenRecord record = RecordOf(token, {"ingest:vision/run"});
    record.made_by = made_by;
    record.family = family.empty() ? token.id : family;
    record.expires_time_us = absl::ToUnixMicros(clock_.Now() + absl::Hours(1));
    return record;
  }
  void LearnFetched(const std::vector<TokenRecord>& fetched) {
    guard_->LearnFetched(fetched, clock_.Monotonic());
  }
  std::string MakerOf(const std::string& text) {
    return TokenGuard::MakerOf(**guard_->IdentifyToken(text));
  }

  const NewToken fetched_ = MakeToken();
  const NewToken renewed_ = MakeToken();
};

TEST_F(FetchedTokensTest, IsLearnedBesideTheOthersAndNamesWhoMadeIt) {
  Learn({RecordOf(token_)});
  const Caller before = *guard_->IdentifyToken(token_.text);
  LearnFetched({Fetched(fetched_, token_.id)});
  const auto caller = guard_->IdentifyToken(fetched_.text);
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_FALSE((*caller)->grants.Reads("vision"));
  EXPECT_EQ(MakerOf(fetched_.text), token_.id);
  EXPECT_EQ(MakerOf(token_.text), token_.id);
  LearnFetched({Fetched(fetched_, token_.id), Fetched(renewed_, token_.id, fetched_.id)});
  EXPECT_EQ(*guard_->IdentifyToken(fetched_.text), *caller) << "calls go on";
  EXPECT_FALSE(HasEnded(before));
  EXPECT_EQ(Shown(renewed_.text), absl::StatusCode::kOk);
  EXPECT_EQ(Shown("stepwell_" + fetched_.id + "_" + renewed_.text.substr(22)),
            absl::StatusCode::kUnauthenticated);
  guard_->LookAround();
  EXPECT_EQ(guard_->fetched_count(), 2);
}

TEST_F(FetchedTokensTest, EndsAsWhoMadeItDoes) {
  TokenRecord maker = RecordOf(token_);
  maker.expires_time_us = absl::ToUnixMicros(clock_.Now() + absl::Seconds(3));
  Learn({maker});
  LearnFetched({Fetched(fetched_, token_.id), Fetched(renewed_, "0123456789ab")});
  const Caller caller = *guard_->IdentifyToken(fetched_.text);
  EXPECT_EQ(Shown(renewed_.text), absl::StatusCode::kUnauthenticated) << "its maker is not here";
  clock_.Advance(absl::Seconds(3));
  guard_->LookAround();
  EXPECT_TRUE(HasEnded(caller)) << "it expired";
  EXPECT_EQ(Shown(fetched_.text), absl::StatusCode::kUnauthenticated);
  Learn({RecordOf(token_), Fetched(fetched_, token_.id)});
  const Caller again = *guard_->IdentifyToken(fetched_.text);
  guard_->EndNow(token_.id);
  EXPECT_TRUE(HasEnded(again)) << "it was revoked";
  EXPECT_EQ(Shown(fetched_.text), absl::StatusCode::kUnauthenticated);
}

TEST_F(FetchedTokensTest, OneThatIsRevokedTakesItsFamilyWithIt) {
  Learn({RecordOf(token_)});
  const NewToken other = MakeToken();
  LearnFetched({Fetched(fetched_, token_.id), Fetched(renewed_, token_.id, fetched_.id),
                Fetched(other, token_.id)});
  guard_->EndNow(renewed_.id);
  EXPECT_EQ(Shown(fetched_.text), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Shown(renewed_.text), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Shown(other.text), absl::StatusCode::kOk);
  EXPECT_EQ(Shown(token_.text), absl::StatusCode::kOk);
}

TEST_F(FetchedTokensTest, WhatWasRevokedIsNotLearnedOfAListThatWasAskedForBefore) {
  const NewToken maker = MakeToken();
  const NewToken made = MakeToken();
  const NewToken other = MakeToken();
  const std::vector<TokenRecord> list = {
      RecordOf(token_),          RecordOf(maker),
      Fetched(made, maker.id),   Fetched(fetched_, token_.id),
      Fetched(other, token_.id), Fetched(renewed_, token_.id, fetched_.id)};
  const auto expect_ended = [&] {
    for (const NewToken& each : {maker, made, fetched_, renewed_}) {
      EXPECT_EQ(Shown(each.text), absl::StatusCode::kUnauthenticated);
    }
    EXPECT_EQ(Shown(other.text), absl::StatusCode::kOk);
  };
  const absl::Duration asked = clock_.Monotonic();
  clock_.Advance(absl::Milliseconds(1));
  // One that is known, with what it made, and one of a family that is not.
  Learn({RecordOf(token_), RecordOf(maker)});
  guard_->EndNow(maker.id);
  guard_->EndNow(renewed_.id);
  guard_->Learn(list, asked);
  expect_ended();
  guard_->LearnFetched(list, asked);
  expect_ended();
  // What was asked for later says what is so, and nothing more is remembered.
  clock_.Advance(absl::Milliseconds(1));
  Learn(list);
  EXPECT_EQ(Shown(maker.text), absl::StatusCode::kOk);
}

TEST_F(FetchedTokensTest, WhatTheFilesTokenMadeEndsWithItAndNotByAnotherFiles) {
  const std::string maker = MakerOf(Token());
  EXPECT_THAT(maker, StartsWith("admin:"));
  Learn({Fetched(fetched_, maker), Fetched(renewed_, "admin:000000000000")});
  const Caller caller = *guard_->IdentifyToken(fetched_.text);
  EXPECT_EQ(Shown(renewed_.text), absl::StatusCode::kUnauthenticated);
  Write(MakeFileToken());
  clock_.Advance(absl::Seconds(1));
  guard_->LookAround();
  EXPECT_TRUE(HasEnded(caller));
  EXPECT_EQ(Shown(fetched_.text), absl::StatusCode::kUnauthenticated);
  EXPECT_NE(MakerOf(Token()), maker);
  unlink(path_.c_str());
  Learn({Fetched(fetched_, maker)});
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Shown(fetched_.text), absl::StatusCode::kUnauthenticated) << "no file, no maker";
}

TEST_F(FetchedTokensTest, IsForgottenAMinuteAfterItsEnd) {
  Learn({RecordOf(token_)});
  LearnFetched({Fetched(fetched_, token_.id)});
  const Caller caller = *guard_->IdentifyToken(fetched_.text);
  clock_.Advance(absl::Hours(1));
  guard_->LookAround();
  EXPECT_TRUE(HasEnded(caller));
  EXPECT_EQ(guard_->fetched_count(), 0);
  EXPECT_EQ(caller.use_count(), 2) << "a clock may be set back";
  clock_.Advance(absl::Minutes(2));
  guard_->LookAround();
  EXPECT_EQ(caller.use_count(), 1);
}

// Whose wall clock people set.
class SetClock final : public Clock {
 public:
  explicit SetClock(const Clock& clock) : clock_(clock) {}
  absl::Time Now() const override { return clock_.Now() + ahead; }
  absl::Duration Monotonic() const override { return clock_.Monotonic(); }
  absl::Duration ahead = absl::ZeroDuration();

 private:
  const Clock& clock_;
};

TEST_F(FetchedTokensTest, AClockThatIsSetBackFindsWhatWasForgotten) {
  SetClock clock(clock_);
  const auto guard = *TokenGuard::Open(path_, clock);
  guard->Learn({RecordOf(token_)}, clock.Monotonic());
  guard->LearnFetched({Fetched(fetched_, token_.id)}, clock.Monotonic());
  guard->LookAround();
  EXPECT_FALSE(guard->TakeMissing());
  clock.ahead = absl::Hours(2);
  guard->LookAround();
  EXPECT_FALSE(guard->TakeMissing()) << "it is over, as far as anybody knows";
  clock.ahead = absl::ZeroDuration();
  guard->LookAround();
  EXPECT_TRUE(guard->TakeMissing());
  EXPECT_FALSE(guard->TakeMissing()) << "once";
}

}  // namespace
}  // namespace stepwell
