// A token, or what is given to a certificate, on a connection whose client's certificate ends.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "server/token_guard.h"

namespace stepwell {
namespace {

class TokenConnectionsTest : public ::testing::Test {
 protected:
  ~TokenConnectionsTest() override { unlink(path_.c_str()); }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "token-connections-", getpid());
  FakeClock clock_;
  const std::shared_ptr<TokenGuard> guard_ = *TokenGuard::Open(path_, clock_);
};

TEST_F(TokenConnectionsTest, OnAConnectionItEndsWithTheCertificateAndWithItself) {
  TokenRecord record{.id = "00000000000a", .name = "agent", .grants = {"read:vision"}};
  record.certificate = "dns:a.lab";
  guard_->Learn({record}, clock_.Monotonic());
  const Caller caller = *guard_->IdentifyCertificate({"dns:a.lab"});
  const auto in = [&](absl::Duration left) {
    return guard_->Until(caller, absl::ToUnixMicros(clock_.Now() + left));
  };
  EXPECT_EQ(*guard_->Until(caller, 0), caller) << "no certificate";
  EXPECT_EQ(*guard_->Until(nullptr, 1), nullptr) << "nobody is asked";
  const Caller brief = *in(absl::Seconds(10));
  const Caller longer = *in(absl::Seconds(100));
  EXPECT_EQ(brief->id, caller->id);
  EXPECT_TRUE(brief->grants.Reads("vision"));
  EXPECT_EQ(*in(absl::Seconds(10)), brief) << "one for all calls of a connection";
  guard_->LookAround();
  EXPECT_FALSE(HasEnded(brief));
  const std::int64_t ended = guard_->ended_count();
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(in(absl::ZeroDuration()).status().code(), absl::StatusCode::kUnauthenticated);
  guard_->LookAround();
  EXPECT_TRUE(HasEnded(brief));
  EXPECT_GT(guard_->ended_count(), ended) << "who holds calls is told";
  EXPECT_FALSE(HasEnded(longer));
  EXPECT_FALSE(HasEnded(caller)) << "another certificate may have its name";
  guard_->EndNow(caller->id);
  EXPECT_TRUE(HasEnded(longer)) << "revoked";
}

TEST_F(TokenConnectionsTest, NoneIsKeptWithoutCallsAndOneThatAClockEndedIsMadeAnew) {
  TokenRecord record{.id = "00000000000a", .name = "agent", .grants = {"read:vision"}};
  record.certificate = "dns:a.lab";
  guard_->Learn({record}, clock_.Monotonic());
  const Caller caller = *guard_->IdentifyCertificate({"dns:a.lab"});
  const std::int64_t end_us = absl::ToUnixMicros(clock_.Now() + absl::Seconds(10));
  std::weak_ptr<TokenHolder> kept = *guard_->Until(caller, end_us);
  EXPECT_FALSE(kept.expired()) << "for the next call of its connection";
  guard_->LookAround();
  EXPECT_TRUE(kept.expired());
  const Caller first = *guard_->Until(caller, end_us);
  clock_.Advance(absl::Seconds(10));
  guard_->LookAround();
  ASSERT_TRUE(HasEnded(first));
  clock_.Advance(-absl::Seconds(5));
  const Caller second = *guard_->Until(caller, end_us);
  EXPECT_FALSE(HasEnded(second));
  EXPECT_TRUE(HasEnded(first)) << "its calls were ended";
}

}  // namespace
}  // namespace stepwell
