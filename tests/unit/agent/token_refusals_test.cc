// What the thread that fetches does, shows and says where masters refuse, hang, lie, or have no tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/trial_tokens_stand.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(TrialTokensTest, AMasterThatIsAwayIsAskedEverMoreSeldomAndTheOldOneIsShownMeanwhile) {
  const auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  Then(absl::UnavailableError("away"));
  Advance(absl::Minutes(36) + absl::Seconds(1));
  ASSERT_THAT(asked(), SizeIs(2));
  const absl::Duration step = absl::Seconds(5);
  for (int i = 0; i < 240; ++i) {
    Advance(step);
    ASSERT_EQ(token->shown().text, "text-1") << i;
  }
  const std::vector<Asked> all = asked();
  std::set<absl::Duration> delays;
  for (std::size_t i = 2; i < all.size(); ++i) delays.insert(all[i].at - all[i - 1].at);
  EXPECT_EQ(*delays.begin(), step);
  EXPECT_GE(*delays.rbegin(), absl::Seconds(20));
  EXPECT_LE(*delays.rbegin(), absl::Minutes(1) + step);
  EXPECT_GE(delays.size(), 4u) << "agents that lost one master do not come back as one";
  EXPECT_GE(all.size(), 20u);
  EXPECT_LE(all.size(), 120u);
  Advance(absl::Minutes(4));
  EXPECT_EQ(token->shown().text, "") << "near its end";
  Advance(absl::Minutes(2));
  EXPECT_EQ(asked().back().with, "own");
  Then(absl::OkStatus());
  Advance(absl::Minutes(1));
  EXPECT_EQ(token->shown().text, "text-2");
}

TEST_F(TrialTokensTest, WhatIsRefusedIsToldOnceAndAskedAgainSeldom) {
  Then(absl::PermissionDeniedError("no grant for that"));
  ::testing::internal::CaptureStderr();
  const auto token = For("run");
  ASSERT_TRUE(Answered(1));
  for (int i = 0; i < 60; ++i) Advance(absl::Minutes(1));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(token->shown().text, "");
  EXPECT_THAT(asked(), SizeIs(13)) << "each five minutes";
  EXPECT_THAT(log, HasSubstr("token_not_fetched"));
  EXPECT_THAT(log, HasSubstr("no grant for that"));
  EXPECT_THAT(log, HasSubstr("the agent's own is shown"));
  EXPECT_EQ(log.find("token_not_fetched"), log.rfind("token_not_fetched")) << log;
}

TEST_F(TrialTokensTest, OfManyTrialsOneIsToldInAMinuteAndNoneIsForgotten) {
  Then(absl::PermissionDeniedError("no grant"));
  ::testing::internal::CaptureStderr();
  const auto a = For("a"), b = For("b"), c = For("c");
  ASSERT_TRUE(Answered(3));
  const auto told = [](const std::string& log) {
    int lines = 0;
    for (std::size_t at = 0; (at = log.find("token_not_fetched", at)) != std::string::npos; ++at) {
      ++lines;
    }
    return lines;
  };
  EXPECT_EQ(told(::testing::internal::GetCapturedStderr()), 1);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 60; ++i) Advance(absl::Minutes(1));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(told(log), 2) << log;
}

TEST_F(TrialTokensTest, OlderMastersAndThoseWithoutTokensAreNoReasonToLook) {
  for (const absl::Status& why :
       {absl::UnimplementedError(""), absl::FailedPreconditionError("asks nobody")}) {
    SCOPED_TRACE(why.ToString());
    Make({.own_token = "own"});
    Then(why);
    ::testing::internal::CaptureStderr();
    const std::size_t before = asked().size();
    const auto token = For("run");
    ASSERT_TRUE(Answered(before + 1));
    for (int i = 0; i < 60; ++i) Advance(absl::Minutes(1));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
    EXPECT_EQ(token->shown().text, "");
    EXPECT_THAT(asked(), SizeIs(before + 13));
    Then(absl::OkStatus());
    Advance(absl::Minutes(5));
    EXPECT_NE(token->shown().text, "") << "it was upgraded meanwhile";
  }
}

TEST_F(TrialTokensTest, OfAnOlderMastersTrialsOneAsksForAll) {
  Then(absl::UnimplementedError(""));
  std::vector<std::shared_ptr<TrialToken>> held;
  for (int i = 0; i < 3; ++i) held.push_back(For(absl::StrCat(i)));
  ASSERT_TRUE(Answered(1));
  for (int i = 0; i < 60; ++i) Advance(absl::Minutes(1));
  EXPECT_THAT(asked(), SizeIs(13));
  Then(absl::OkStatus());
  Advance(absl::Minutes(5));
  for (const auto& each : held) EXPECT_NE(each->shown().text, "");
}

TEST_F(TrialTokensTest, OneThatAMasterRefusesIsShownNoMoreAndAnotherIsFetchedWithTheAgentsOwn) {
  const auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  token->Reject("text-1");
  ASSERT_TRUE(Becomes([&] { return token->shown().text.empty(); }));
  Advance(absl::Seconds(5));
  EXPECT_EQ(token->shown().text, "text-2");
  EXPECT_EQ(asked()[1].with, "own");
  // A master that refuses whatever it gives.
  const absl::Duration begin = clock_.Monotonic();
  while (clock_.Monotonic() - begin < absl::Hours(1)) {
    token->Reject(token->shown().text);
    Advance(absl::Seconds(15));
  }
  EXPECT_LE(asked().size(), 80u) << "is not asked without end";
}

// A refusal that passes: a launcher's token ended long ago, so that it is all there is.
TEST_F(TrialTokensTest, WhereTheAgentsOwnWasFetchedARefusedOneIsKeptAndRenewedWhenItPasses) {
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.renews = true;
  }
  const auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  Then(absl::UnauthenticatedError("unknown"));
  ::testing::internal::CaptureStderr();
  token->Reject("text-1");
  for (int i = 0; i < 30; ++i) {
    Advance(absl::Seconds(10));
    ASSERT_EQ(token->shown().text, "text-1");
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the one of before is shown"));
  EXPECT_THAT(log, Not(HasSubstr("the agent's own")));
  const std::size_t tries = asked().size() - 1;
  EXPECT_GE(tries, 3u);
  EXPECT_LE(tries, 20u);
  Then(absl::OkStatus());
  Advance(absl::Minutes(5));
  EXPECT_EQ(token->shown().text, "text-2");
  for (const Asked& each : asked())
    EXPECT_EQ(each.with, each.at == asked()[0].at ? "own" : "text-1");
}

TEST_F(TrialTokensTest, WhereTheAgentsOwnIsRefusedAsWellBothAreTriedAndBothRefusalsTold) {
  const auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  Then(absl::UnauthenticatedError("unknown"));
  ::testing::internal::CaptureStderr();
  std::set<std::string> shown, with;
  Advance(absl::Minutes(24));
  for (int i = 0; i < 300; ++i) {
    Advance(absl::Seconds(5));
    shown.insert(token->shown().text);
    with.insert(asked().back().with);
  }
  EXPECT_THAT(shown, ElementsAre("", "text-1"));
  EXPECT_THAT(with, ElementsAre("own", "text-1"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::size_t first = log.find("token_not_fetched");
  const std::size_t second = log.find("token_not_fetched", first + 1);
  ASSERT_NE(second, std::string::npos) << log;
  EXPECT_THAT(log.substr(0, second), HasSubstr("the agent's own is shown\""));
  EXPECT_THAT(log.substr(second), HasSubstr("the one of before is shown"));
  EXPECT_EQ(log.find("token_not_fetched", second + 1), std::string::npos) << log;
  Then(absl::OkStatus());
  Advance(absl::Minutes(5));
  EXPECT_EQ(token->shown().text, "text-2");
}

// An upload's.
TEST_F(TrialTokensTest, WhatIsToldOfATextReachesWhoeverFetchedIt) {
  const auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  tokens_->Reject("another:7817", "text-1");
  tokens_->Reject(kServer, "own");
  Settle();
  EXPECT_EQ(token->shown().text, "text-1");
  tokens_->Reject(kServer, "text-1");
  EXPECT_TRUE(Becomes([&] { return token->shown().text.empty(); }));
}

TEST_F(TrialTokensTest, WhatIsNoTokenIsShownToNobody) {
  ::testing::internal::CaptureStderr();
  auto without_end = TokenOf("text", absl::ZeroDuration());
  without_end.mutable_token()->set_expires_time_us(0);
  for (const auto& answer : {TokenOf("", absl::Hours(1)), TokenOf("two\r\nlines", absl::Hours(1)),
                             TokenOf("a b", absl::Hours(1)), TokenOf("\xc3\xa4", absl::Hours(1)),
                             TokenOf(std::string(513, 'x'), absl::Hours(1)),
                             TokenOf("text", -absl::Hours(1)), without_end}) {
    Answer(answer);
  }
  const auto token = For("run");
  ASSERT_TRUE(Answered(1));
  for (std::size_t i = 1; i <= 7; ++i) {
    ASSERT_THAT(asked(), SizeIs(i));
    EXPECT_EQ(token->shown().text, "");
    Advance(absl::Minutes(5));
  }
  EXPECT_EQ(token->shown().text, "text-1");
  ::testing::internal::GetCapturedStderr();
}

TEST_F(TrialTokensTest, NoTextIsLoggedAlsoWhereAMasterSaysIt) {
  Make({.own_token = "the-secret-of-mine"});
  ::testing::internal::CaptureStderr();
  Then(absl::UnauthenticatedError("'the-secret-of-mine' is unknown: the-secret-of-mine"));
  const auto token = For("run");
  ASSERT_TRUE(Answered(1));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("(a token)"));
  EXPECT_THAT(log, Not(HasSubstr("the-secret-of-mine")));
}

TEST_F(TrialTokensTest, AMasterThatHangsHoldsUpNoOthers) {
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.silent_server = "a-hung:7817";
  }
  std::vector<std::shared_ptr<TrialToken>> held;
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.hangs = true;
  }
  held.push_back(tokens_->For("a-hung:7817", "vision", "0"));
  ASSERT_TRUE(AskedTimes(1));
  for (int i = 1; i < 100; ++i) {
    held.push_back(tokens_->For("a-hung:7817", "vision", absl::StrCat(i)));
  }
  held.push_back(For("run"));
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.hangs = false;
  }
  ASSERT_TRUE(Becomes([&] { return !held.back()->shown().text.empty(); }));
  EXPECT_THAT(asked(), SizeIs(2)) << "those behind the first were not asked one by one";
  // Nor in each round: alone, and ever more seldom.
  std::size_t count_before = 0;
  for (int i = 0; i < 600; ++i) {
    Advance(absl::Seconds(5));
    if (i == 299) count_before = asked().size();
  }
  EXPECT_GE(asked().size() - count_before, 25u);
  EXPECT_LE(asked().size() - count_before, 200u) << "of a hundred trials";
}

// What others are told does not wait until all of a master's were tried.
TEST_F(TrialTokensTest, WhileAMasterHangsWhatOthersRefuseIsHeardBeforeTheNextIsAsked) {
  const auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  std::vector<std::shared_ptr<TrialToken>> held;
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.hangs = true;
  }
  held.push_back(tokens_->For("hung-1:7817", "vision", "run"));
  ASSERT_TRUE(AskedTimes(2));
  held.push_back(tokens_->For("hung-2:7817", "vision", "run"));
  tokens_->Reject(kServer, "text-1");
  EXPECT_EQ(token->shown().text, "text-1");
  {
    // The next one hangs as well.
    const absl::MutexLock lock(&masters_.mu);
    masters_.answers.push_back(absl::DeadlineExceededError("hung"));
    masters_.lets_through = 1;
  }
  ASSERT_TRUE(AskedTimes(3));
  EXPECT_EQ(token->shown().text, "");
}

}  // namespace
}  // namespace stepwell::agent
