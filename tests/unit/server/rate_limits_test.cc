#include "server/rate_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/ended_tokens.h"
#include "server/error_details.h"
#include "server/peer_address.h"
#include "server/rate_refusal.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

Caller Holder(const std::string& id) {
  auto holder = std::make_shared<TokenHolder>();
  holder->id = id;
  holder->name = "ci";
  return holder;
}

class RateLimitsTest : public ::testing::Test {
 protected:
  absl::Status Call(const std::string& address, const Caller& caller = nullptr) {
    return limits_.Take(RateKind::kCalls, {address, caller.get()}, 1);
  }
  // As of a wrong one.
  absl::StatusCode Wrong(const std::string& address) {
    return limits_.JudgeToken(address, absl::UnauthenticatedError("no such token")).status().code();
  }

  FakeClock clock_;
  RateLimits limits_{{.per_second = {1000, 100, 10, 5, 2, 500},
                      .wrong_tokens_per_minute = 6,
                      .connections_per_address_max = 20,
                      .shared_addresses = {"10.0.0.9"}},
                     clock_};
};

TEST_F(RateLimitsTest, ARefusalSaysWhichLimitOfWhomWhatIsAllowedAndWhenToComeAgain) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Call("10.0.0.1").ok());
  const absl::Status refused = Call("10.0.0.1");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "the address 10.0.0.1 has used up its calls: allowed are 2 a second, 20 at once; "
            "--calls-per-second is the limit; come again in 0.001 s");
  const ErrorDetails details = DetailsOf(refused);
  EXPECT_EQ(details.reason, "RATE_LIMIT");
  EXPECT_EQ(details.metadata.at("limit"), "calls-per-second");
  EXPECT_EQ(details.metadata.at("allowed"), "2");
  ASSERT_TRUE(details.retry_delay.has_value());
  EXPECT_TRUE(Call("10.0.0.2").ok()) << "others go on";
  clock_.Advance(*details.retry_delay);
  EXPECT_TRUE(Call("10.0.0.1").ok()) << "as it was told";
  EXPECT_EQ(limits_.counts().refused[static_cast<int>(RateKind::kCalls)], 1u);
}

// How large an answer is nobody knows before: it is never cut, and what comes next waits for it.
TEST_F(RateLimitsTest, WhatIsReadIsOwedForByWhoeverReadIt) {
  const Caller reader = Holder("000000000001");
  const Caller other = Holder("000000000002");
  const auto may_read = [&](const std::string& address, const Caller& caller) {
    return limits_.Take(RateKind::kReadBytes, {address, caller.get()}, 0);
  };
  const struct {
    const char* name;
    double bytes;
    double wait;  // seconds; 0 = none
  } rows[] = {
      {"a small one", 500, 0},
      {"what comes at once, but for a byte", 4999, 0},
      {"what comes at once", 5000, 0.001},
      {"twice as much", 10'000, 10.001},
      {"as large as may be", 1e9, 60.001},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_TRUE(may_read("10.0.0.9", reader).ok());
    limits_.Spend(RateKind::kReadBytes, {"10.0.0.9", reader.get()}, row.bytes);
    const absl::Status next = may_read("10.0.0.9", reader);
    EXPECT_EQ(next.ok(), row.wait == 0) << next;
    if (!next.ok()) {
      const ErrorDetails details = DetailsOf(next);
      EXPECT_EQ(details.reason, "RATE_LIMIT");
      EXPECT_EQ(details.metadata.at("limit"), "read-bytes-per-second");
      EXPECT_NEAR(absl::ToDoubleSeconds(details.retry_delay.value_or(absl::ZeroDuration())),
                  row.wait, 0.0011);
      EXPECT_TRUE(may_read("10.0.0.9", other).ok());
      EXPECT_TRUE(limits_.Take(RateKind::kCalls, {"10.0.0.9", reader.get()}, 1).ok());
      clock_.Advance(details.retry_delay.value_or(absl::ZeroDuration()));
      EXPECT_TRUE(may_read("10.0.0.9", reader).ok()) << "as it was told";
    }
    clock_.Advance(absl::Hours(1));
  }
  limits_.Spend(RateKind::kReadBytes, {"10.0.0.1", nullptr}, 5000);
  EXPECT_THAT(std::string(may_read("10.0.0.1", other).message()),
              HasSubstr("the address 10.0.0.1 has used up its bytes of answers"));
}

TEST_F(RateLimitsTest, AStreamLeavesASecondsWorthToCallsOfItsTokenAndOfItsAddress) {
  const Caller reader = Holder("000000000001");
  const struct {
    const char* name;
    double used;
    double amount;
    double wait;  // seconds; 0 = none
  } rows[] = {
      {"all is there", 0, 100, 0},
      {"more than enough for both", 4399, 100, 0},
      {"not quite", 4400, 100, 0.001},
      {"less than what is left to calls", 4600, 100, 0.401},
      {"nothing", 5000, 100, 1.201},
      {"a large one", 2000, 4000, 3.001},
      {"one larger than all that comes at once", 0, 1e6, 0},
      {"such a one, later", 1000, 1e6, 1.001},
  };
  for (const auto& row : rows) {
    for (const char* address : {"10.0.0.9", "10.0.0.1"}) {
      SCOPED_TRACE(absl::StrCat(row.name, ", ", address));
      // A shared one has no allowance of its own.
      const RatePayer payer{address,
                            std::string_view(address) == "10.0.0.9" ? reader.get() : nullptr};
      limits_.Spend(RateKind::kReadBytes, payer, row.used);
      const auto take = [&] {
        return limits_.TryTake(RateKind::kReadBytes, payer, row.amount, absl::Seconds(1));
      };
      const auto missing = take();
      EXPECT_NEAR(absl::ToDoubleSeconds(missing.wait), row.wait, 1e-6);
      if (row.wait > 0) {
        EXPECT_EQ(missing.is_of_token, payer.token != nullptr);
        clock_.Advance(missing.wait);
        EXPECT_EQ(take().wait, absl::ZeroDuration());
      }
      const bool is_left = limits_.Take(RateKind::kReadBytes, payer, 0).ok();
      EXPECT_EQ(is_left, row.amount < 5000) << "for calls";
      clock_.Advance(absl::Hours(1));
    }
  }
}

TEST_F(RateLimitsTest, ATokenAndItsAddressAreBothAsked) {
  const Caller one = Holder("000000000001");
  const Caller two = Holder("000000000002");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Call(absl::StrCat("10.1.0.", i), one).ok());
  const absl::Status of_token = Call("10.2.0.1", one);
  EXPECT_THAT(std::string(of_token.message()),
              HasSubstr("the token 000000000001 (ci) has used up its calls"));
  EXPECT_TRUE(Call("10.2.0.1", two).ok());
  // What the address refuses is given back to the token.
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(Call("10.2.0.1").ok());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Call("10.2.0.1", two).ok());
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(Call("10.0.0.9", two).ok());
  EXPECT_FALSE(Call("10.0.0.9", two).ok()) << "a shared address is held by its tokens";
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Call("10.0.0.9").ok());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Call("").ok()) << "where it comes from is not known";
}

TEST_F(RateLimitsTest, TokensThatWereFetchedUseWhatTheirMakerMay) {
  const Caller maker = Holder("000000000001");
  const auto fetched = [](const std::string& id) {
    Caller holder = Holder(id);
    holder->made_by = "000000000001";
    return holder;
  };
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(Call("", fetched(absl::StrCat("f", i))).ok());
  EXPECT_TRUE(Call("", maker).ok());
  EXPECT_FALSE(Call("", fetched("another")).ok());
  EXPECT_FALSE(Call("", maker).ok());
  // One that renews another is no stranger where that one was right.
  EXPECT_TRUE(limits_.JudgeToken("10.0.0.1", fetched("f1")).ok());
  for (int i = 0; i < 100; ++i) Wrong("10.0.0.1");
  EXPECT_TRUE(limits_.JudgeToken("10.0.0.1", fetched("f2")).ok());
}

TEST_F(RateLimitsTest, WrongTokensSlowDownTheirAddressAlone) {
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Wrong("10.0.0.1"), absl::StatusCode::kUnauthenticated);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Wrong("10.0.0.1"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Wrong("10.0.0.2"), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(limits_.JudgeToken("10.0.0.2", Holder("a")).ok());
  // A right one cannot be told from a wrong one there, until something is left again.
  const auto right = limits_.JudgeToken("10.0.0.1", Holder("a"));
  EXPECT_EQ(right.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailsOf(right.status()).metadata.at("limit"), "wrong-tokens-per-minute");
  clock_.Advance(*RetryDelayOf(right.status()));
  EXPECT_TRUE(limits_.JudgeToken("10.0.0.1", Holder("a")).ok());
  EXPECT_EQ(limits_.counts().wrong_tokens, 51u);
}

TEST_F(RateLimitsTest, ATokenThatWasRightAtAnAddressIsNotLockedOutThere) {
  EXPECT_TRUE(limits_.JudgeToken("10.0.0.1", Holder("a")).ok());
  for (int i = 0; i < 100; ++i) Wrong("10.0.0.1");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limits_.JudgeToken("10.0.0.1", Holder("a")).ok());
  EXPECT_FALSE(limits_.JudgeToken("10.0.0.1", Holder("b")).ok());
  // Each use counts anew, for an hour.
  clock_.Advance(absl::Minutes(50));
  for (int i = 0; i < 100; ++i) Wrong("10.0.0.1");
  EXPECT_TRUE(limits_.JudgeToken("10.0.0.1", Holder("a")).ok());
  clock_.Advance(absl::Minutes(61));
  for (int i = 0; i < 100; ++i) Wrong("10.0.0.1");
  EXPECT_FALSE(limits_.JudgeToken("10.0.0.1", Holder("a")).ok());
}

TEST_F(RateLimitsTest, AnEndedTokenThatIsShownAgainAndAgainIsNoGuess) {
  const auto ended = [this] {
    return limits_.JudgeToken("10.0.0.1", EndedTokenRefusal("it was revoked")).status().code();
  };
  for (int i = 0; i < 200; ++i) EXPECT_EQ(ended(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(limits_.JudgeToken("10.0.0.1", Holder("new")).ok()) << "behind the same address";
  // Where guesses are used up it is told from none of them.
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Wrong("10.0.0.1"), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Wrong("10.0.0.1"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ended(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RateLimitsTest, ADatabaseThatDoesNotAnswerCountsForNobody) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(
        limits_.JudgeToken("10.0.0.1", absl::UnavailableError("no database")).status()));
  }
  EXPECT_EQ(Wrong("10.0.0.1"), absl::StatusCode::kUnauthenticated);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Wrong("10.0.0.9"), absl::StatusCode::kUnauthenticated);
}

TEST_F(RateLimitsTest, AllConnectionsOfAnAddressMayComeAgainFourTimesAtOnce) {
  for (int i = 0; i < 80; ++i) EXPECT_TRUE(limits_.MayConnect("10.0.0.1"));
  EXPECT_FALSE(limits_.MayConnect("10.0.0.1"));
  EXPECT_TRUE(limits_.MayConnect("10.0.0.2"));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limits_.MayConnect("10.0.0.9")) << "a proxy";
  clock_.Advance(absl::Seconds(10));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(limits_.MayConnect("10.0.0.1"));
  EXPECT_FALSE(limits_.MayConnect("10.0.0.1"));
  EXPECT_EQ(limits_.counts().connections, 2u);
}

TEST_F(RateLimitsTest, WhatIsRefusedStandsInTheLogOnceASecondWithoutTheToken) {
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 10; ++i) Wrong("10.0.0.1");
  clock_.Advance(absl::Seconds(2));
  Wrong("10.0.0.9");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_THAT(log, HasSubstr("token_refused"));
  EXPECT_THAT(log, HasSubstr("10.0.0.1"));
  EXPECT_THAT(log, HasSubstr("others_since=9"));
  EXPECT_THAT(log, ::testing::Not(HasSubstr("connection 1"))) << "its place in memory is nobody's";
}

TEST(PeerAddressTest, OneNetworkOfIpv6IsOneAddress) {
  const struct {
    const char* peer;
    const char* key;
  } rows[] = {
      {"ipv4:10.0.0.7:51034", "10.0.0.7"},
      {"ipv6:[::1]:80", "::/64"},
      {"ipv6:%5B2001:db8:0:1:aaaa::7%5D:80", "2001:db8:0:1::/64"},
      {"ipv6:[2001:db8:0:1::9]:80", "2001:db8:0:1::/64"},
      {"ipv6:[::ffff:10.0.0.7]:80", "10.0.0.7"},
      {"ipv6:[fe80::1%eth0]:80", "fe80::/64"},
      {"ipv6:%5Bfe80::1%25eth0%5D:80", "fe80::/64"},
      {"ipv4:10.0.0.7%eth0:80", ""},
      {"unix:/tmp/socket", ""},
      {"inproc", ""},
      {"ipv4:", ""},
      {"", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(AddressOfPeer(row.peer), row.key) << row.peer;
  const struct {
    const char* peer;
    const char* end;
  } ends[] = {
      {"ipv4:10.0.0.7:51034", "10.0.0.7:51034"},
      {"ipv6:[::ffff:10.0.0.7]:80", "10.0.0.7:80"},
      {"ipv6:%5B2001:db8:0:0:0:0:0:7%5D:80", "[2001:db8::7]:80"},
      {"ipv6:%5Bfe80::1%25eth0%5D:80", "[fe80::1]:80"},
      {"inproc", ""},
      {"unix:/tmp/socket", ""},
  };
  for (const auto& row : ends) EXPECT_EQ(EndOfPeer(row.peer), row.end) << row.peer;
  EXPECT_EQ(*ParseAddresses(" 10.0.0.7, 2001:db8::1,"),
            (std::set<std::string>{"10.0.0.7", "2001:db8::/64"}));
  EXPECT_EQ(ParseAddresses("fe80::7%eth0").value_or(std::set<std::string>()),
            (std::set<std::string>{"fe80::/64"}));
  EXPECT_TRUE(ParseAddresses("")->empty());
  EXPECT_EQ(ParseAddresses("10.0.0.7,proxy.lab").status().message(), "'proxy.lab' is no address");
}

TEST(PeerAddressTest, ASocketsOtherEndIsCountedAsItsPeerIs) {
  const struct {
    const char* address;
    std::uint32_t zone;
    const char* key;
  } rows[] = {
      {"2001:db8:0:1::9", 0, "2001:db8:0:1::/64"},
      {"2001:db8:0:1:ffff:ffff:ffff:ffff", 0, "2001:db8:0:1::/64"},
      {"2001:db8:0:2::9", 0, "2001:db8:0:2::/64"},
      {"fe80::1", 7, "fe80::/64"},
      {"::1", 0, "::/64"},
      {"::ffff:10.0.0.7", 0, "10.0.0.7"},
  };
  for (const auto& row : rows) {
    sockaddr_in6 peer{};
    peer.sin6_family = AF_INET6;
    peer.sin6_scope_id = row.zone;
    ASSERT_EQ(inet_pton(AF_INET6, row.address, &peer.sin6_addr), 1);
    EXPECT_EQ(AddressOfSocket(reinterpret_cast<const sockaddr&>(peer)), row.key) << row.address;
    EXPECT_EQ(AddressKey(row.address), row.key) << row.address;
  }
  EXPECT_EQ(AddressKey(std::string_view("10.0.0.7\0.9", 11)), std::nullopt) << "whose is that";
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  ASSERT_EQ(inet_pton(AF_INET, "10.0.0.7", &peer.sin_addr), 1);
  EXPECT_EQ(AddressOfSocket(reinterpret_cast<const sockaddr&>(peer)), "10.0.0.7");
  peer.sin_family = AF_UNIX;
  EXPECT_EQ(AddressOfSocket(reinterpret_cast<const sockaddr&>(peer)), "");
}

}  // namespace
}  // namespace stepwell
