// The thread that fetches: what it asks a master for, when, with what, and what it shows meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/trial_tokens_stand.h"

namespace stepwell::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(TrialTokensTest, IsFetchedWithTheAgentsOwnAndRenewedByItselfBeforeItsEnd) {
  const auto token = For("run");
  ASSERT_NE(token, nullptr);
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  EXPECT_TRUE(Becomes([&] { return changes_ == 1; })) << "streams are told";
  ASSERT_THAT(asked(), SizeIs(1));
  EXPECT_EQ(asked()[0].server, kServer);
  EXPECT_EQ(asked()[0].with, "own");
  EXPECT_EQ(asked()[0].trial.project(), "vision");
  EXPECT_EQ(asked()[0].trial.external_id(), "run");
  Advance(absl::Minutes(23));
  EXPECT_THAT(asked(), SizeIs(1)) << "not before 0.4 of its life";
  Advance(absl::Minutes(14));
  ASSERT_THAT(asked(), SizeIs(2)) << "by 0.6 of it";
  EXPECT_EQ(asked()[1].with, "text-1");
  EXPECT_EQ(token->shown().text, "text-2");
  for (int i = 3; i < 50; ++i) {
    Advance(absl::Minutes(36) + absl::Seconds(1));
    ASSERT_EQ(token->shown().text, absl::StrCat("text-", i));
  }
}

TEST_F(TrialTokensTest, ATrialByItsNumberIsAskedForByThat) {
  const auto token = For("id:1000000007");
  ASSERT_TRUE(AskedTimes(1));
  EXPECT_EQ(asked()[0].trial.trial_id(), 1'000'000'007);
  EXPECT_EQ(asked()[0].trial.external_id(), "");
}

TEST_F(TrialTokensTest, ATrialThatIsOverIsRenewedNoMoreAndItsUploadsShowTheLastToken) {
  auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  v1::TrialRef run;
  run.set_project("vision");
  run.set_external_id("run");
  EXPECT_EQ(tokens_->ShownFor(kServer, run), "text-1");
  token.reset();
  Advance(absl::Minutes(59));
  EXPECT_EQ(tokens_->ShownFor(kServer, run), "text-1");
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(Becomes([&] { return tokens_->ShownFor(kServer, run) == "own"; }));
  clock_.Advance(absl::Hours(10));
  // With nothing to fetch it sleeps.
  EXPECT_TRUE(Becomes([&] {
    const std::uint64_t before = clock_.looks();
    absl::SleepFor(absl::Milliseconds(50));
    return clock_.looks() == before;
  }));
  EXPECT_THAT(asked(), SizeIs(1));
  // Its next attempt.
  token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-2"; }));
  EXPECT_EQ(asked()[1].with, "own");
}

TEST_F(TrialTokensTest, AnAttemptThatFollowsSoonShowsWhatIsThere) {
  auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  token.reset();
  Advance(absl::Minutes(20));
  token = For("run");
  EXPECT_EQ(token->shown().text, "text-1") << "before half of its life none is fetched";
  Advance(absl::Minutes(30));
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-2"; })) << "and is renewed again";
}

TEST_F(TrialTokensTest, UploadsShowTheTokenOfTheirTrialAndNoOthers) {
  const auto token = For("run");
  const auto by_number = For("id:7");
  ASSERT_TRUE(Becomes([&] { return !by_number->shown().text.empty(); }));
  ASSERT_TRUE(Becomes([&] { return !token->shown().text.empty(); }));
  v1::TrialRef run;
  run.set_project("vision");
  run.set_external_id("run");
  EXPECT_EQ(tokens_->ShownFor(kServer, run), token->shown().text);
  EXPECT_EQ(tokens_->ShownFor("another:7817", run), "own");
  run.set_project("speech");
  EXPECT_EQ(tokens_->ShownFor(kServer, run), "own");
  run.set_project("vision");
  run.set_external_id("run-2");
  EXPECT_EQ(tokens_->ShownFor(kServer, run), "own");
  v1::TrialRef seven;
  seven.set_trial_id(7);
  EXPECT_EQ(tokens_->ShownFor(kServer, seven), by_number->shown().text);
  EXPECT_EQ(tokens_->OwnFor(kServer), "own") << "which was not fetched";
}

TEST_F(TrialTokensTest, WhereTheAgentsOwnWasFetchedItIsRenewedAsLongAsTheAgentIs) {
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.renews = true;
  }
  auto token = For("run");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  EXPECT_EQ(tokens_->OwnFor(kServer), "text-1");
  EXPECT_EQ(tokens_->OwnFor("another:7817"), "own");
  token.reset();
  for (int i = 2; i < 20; ++i) {
    Advance(absl::Minutes(36) + absl::Seconds(1));
    EXPECT_EQ(tokens_->OwnFor(kServer), absl::StrCat("text-", i));
  }
  // What the agent was started with ended long ago.
  const auto next = For("run");
  EXPECT_EQ(next->shown().text, "text-19");
}

// An agent of all users begins it as it looks after one of them, who may not read its certificate's key.
// As `stepwell run` hands one to a training whose agent is there already, for another trial.
TEST_F(TrialTokensTest, WhatAWriterBringsFetchesTheNextOneOfItsTrialInPlaceOfTheAgentsOwn) {
  Renew();
  const auto token = tokens_->For(kServer, "vision", "run", "brought");
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  EXPECT_EQ(asked().at(0).with, "brought");
  EXPECT_EQ(tokens_->OwnFor(kServer), "own") << "which is not its";
  Advance(absl::Minutes(37));
  ASSERT_THAT(asked(), SizeIs(2));
  EXPECT_EQ(asked()[1].with, "text-1");
  EXPECT_EQ(token->shown().text, "text-2");
  const auto beside = For("beside");
  ASSERT_TRUE(AskedTimes(3));
  EXPECT_EQ(asked()[2].with, "own");
}

TEST_F(TrialTokensTest, WhatAWriterBringsIsEnoughForAnAgentWithoutAny) {
  Make({});
  EXPECT_EQ(For("run"), nullptr);
  const auto token = tokens_->For(kServer, "vision", "run", "brought");
  ASSERT_NE(token, nullptr);
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  EXPECT_EQ(asked().at(0).with, "brought");
}

// Its process is over for longer than the token lives.
TEST_F(TrialTokensTest, WhereWhatAWriterBroughtHasEndedTheAgentsOwnFetches) {
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.answers.emplace_back(absl::UnauthenticatedError("ended"));
  }
  const auto token = tokens_->For(kServer, "vision", "run", "brought");
  ASSERT_TRUE(Answered(1));
  EXPECT_EQ(asked()[0].with, "brought");
  Advance(absl::Minutes(1));
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  EXPECT_EQ(asked().back().with, "own");
}

// The agent that a training with such a token started: that is its own as well, and is kept from ending.
TEST_F(TrialTokensTest, WhereTheAgentsOwnIsWhatAWriterBringsItIsRenewedAsLongAsTheAgentIs) {
  Make({.own_token = "its"});
  Renew();
  auto token = tokens_->For(kServer, "vision", "run", "its");
  ASSERT_TRUE(Becomes([&] { return tokens_->OwnFor(kServer) == "text-1"; }));
  token.reset();
  Advance(absl::Minutes(37));
  EXPECT_EQ(tokens_->OwnFor(kServer), "text-2");
}

// Two runs of one trial: the agent began with the token of the one, and the other's is there first, or the newest.
TEST_F(TrialTokensTest, OfSeveralRunsOfATrialTheAgentsOwnIsRenewedWhicheverFetchesTheNext) {
  Renew();
  for (const bool is_own_first : {true, false}) {
    SCOPED_TRACE(is_own_first);
    Make({.own_token = "its"});
    const std::size_t before = asked().size();
    if (is_own_first) Answer(absl::UnavailableError("come again"));
    auto token = tokens_->For(kServer, "vision", "run", is_own_first ? "its" : "other");
    ASSERT_TRUE(Answered(before + 1));
    tokens_->For(kServer, "vision", "run", is_own_first ? "other" : "its");
    Advance(absl::Seconds(2));
    ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
    EXPECT_EQ(asked().back().with, "other");
    EXPECT_EQ(tokens_->OwnFor(kServer), "text-1");
    token.reset();
    Advance(absl::Minutes(37));
    EXPECT_EQ(tokens_->OwnFor(kServer), "text-2") << "as long as the agent is";
  }
}

// As the writers of older runs bring them, which an agent finds in any order.
TEST_F(TrialTokensTest, OneThatEndedOrIsAnotherTrialsTakesNoOthersPlace) {
  Make({});
  Answer(absl::UnavailableError("come again"));
  Answer(absl::UnauthenticatedError("ended"));
  Answer(absl::PermissionDeniedError("of another trial"));
  const auto token = tokens_->For(kServer, "vision", "run", "good");
  ASSERT_TRUE(Answered(1));
  tokens_->For(kServer, "vision", "run", "foreign");
  tokens_->For(kServer, "vision", "run", "ended");
  for (int i = 0; i < 5; ++i) Advance(absl::Seconds(1));
  ASSERT_THAT(asked(), SizeIs(4)) << "not in five minutes";
  EXPECT_EQ(asked()[1].with, "ended");
  EXPECT_EQ(asked()[2].with, "foreign");
  EXPECT_EQ(asked()[3].with, "good");
  EXPECT_EQ(token->shown().text, "text-1");
}

TEST_F(TrialTokensTest, WhatIsOfAnotherTrialGivesWayToTheAgentsOwn) {
  Answer(absl::PermissionDeniedError("of another trial"));
  const auto token = tokens_->For(kServer, "vision", "run", "foreign");
  ASSERT_TRUE(Answered(1));
  Advance(absl::Seconds(1));
  ASSERT_TRUE(Becomes([&] { return token->shown().text == "text-1"; }));
  EXPECT_EQ(asked().back().with, "own");
}

// A stream carries the writers of all trials, and they show what is theirs.
TEST_F(TrialTokensTest, AStreamShowsWhatLivesWhereTheAgentsOwnEndsSoonOrIsNone) {
  Then(absl::UnauthenticatedError("ended"));
  Make({.own_token = "its"});
  const auto of_run = tokens_->For(kServer, "vision", "run", "its");
  ASSERT_TRUE(Answered(1));
  EXPECT_EQ(tokens_->StreamFor(kServer), "its") << "there is nothing else";
  Then(absl::OkStatus());
  // The next agent of the same.
  const auto other = tokens_->For(kServer, "vision", "other", "brought");
  ASSERT_TRUE(Becomes([&] { return !other->shown().text.empty(); }));
  EXPECT_EQ(tokens_->StreamFor("another:7817"), "its");
  EXPECT_EQ(tokens_->StreamFor(kServer), other->shown().text);

  Make({});
  const auto alone = tokens_->For(kServer, "vision", "run", "brought");
  ASSERT_TRUE(Becomes([&] { return !alone->shown().text.empty(); }));
  EXPECT_EQ(tokens_->StreamFor(kServer), alone->shown().text);
  EXPECT_EQ(tokens_->OwnFor(kServer), "") << "uploads of other trials show none";

  Make({.has_certificate = true});
  const auto certified = tokens_->For(kServer, "vision", "run", "brought");
  ASSERT_TRUE(Becomes([&] { return !certified->shown().text.empty(); }));
  EXPECT_EQ(tokens_->StreamFor(kServer), "") << "a token would count instead of the certificate";

  Make({.own_token = "wide"});
  const auto beside = tokens_->For(kServer, "vision", "run", "brought");
  ASSERT_TRUE(Becomes([&] { return !beside->shown().text.empty(); }));
  EXPECT_EQ(tokens_->StreamFor(kServer), "wide");
}

// The first one is over when the next agent begins.
TEST_F(TrialTokensTest, WhatCameOfAWritersIsKeptForTheNextAgentAndNothingElse) {
  Renew();
  absl::Mutex mu;
  std::vector<KeptToken> kept;
  const auto keep = [&](const std::vector<KeptToken>& tokens) {
    const absl::MutexLock lock(&mu);
    kept = tokens;
  };
  const auto now_kept = [&] {
    const absl::MutexLock lock(&mu);
    return kept;
  };
  TrialTokens::Options options{.own_token = "its"};
  options.keep = keep;
  Make(options);
  auto token = tokens_->For(kServer, "vision", "run", "its");
  auto of_own = For("beside");
  ASSERT_TRUE(Becomes([&] { return now_kept().size() == 1 && !of_own->shown().text.empty(); }));
  Advance(absl::Minutes(37));
  const std::string newest = token->shown().text;
  ASSERT_TRUE(Becomes([&] { return now_kept().at(0).text == newest; }));
  EXPECT_EQ(now_kept().at(0).trial, "run");
  EXPECT_THAT(now_kept(), SizeIs(1)) << "what the agent fetched with its own is in memory alone";

  options.kept = now_kept();
  Make(options);
  const std::size_t before = asked().size();
  token = tokens_->For(kServer, "vision", "run", "its");
  ASSERT_TRUE(Becomes([&] { return !token->shown().text.empty(); }));
  EXPECT_EQ(asked().at(before).with, newest);
  EXPECT_EQ(tokens_->OwnFor(kServer), token->shown().text)
      << "it is renewed as the agent's own was";
  EXPECT_TRUE(Becomes([&] { return now_kept().at(0).text == token->shown().text; }));
}

TEST_F(TrialTokensTest, WhatAgentsBeforeKeptStandsBehindItsOwnAndGoesWhenItEnds) {
  Renew();
  absl::Mutex mu;
  std::vector<std::string> kept;
  TrialTokens::Options options{.own_token = "own"};
  options.keep = [&](const std::vector<KeptToken>& tokens) {
    const absl::MutexLock lock(&mu);
    kept.clear();
    for (const KeptToken& each : tokens) kept.push_back(each.trial);
  };
  const auto now_kept = [&] {
    const absl::MutexLock lock(&mu);
    return kept;
  };
  const auto of_before = [&](const std::string& trial, absl::Duration lives) {
    return KeptToken{kServer, "vision", trial, "stepwell_a_b", clock_.Now() + lives};
  };
  options.kept = {of_before("old", absl::Minutes(10)), of_before("older", absl::Minutes(5))};
  Make(options);
  const auto token = tokens_->For(kServer, "vision", "run", "its");
  ASSERT_TRUE(Becomes([&] { return !now_kept().empty(); }));
  EXPECT_EQ(now_kept(), (std::vector<std::string>{"run", "old", "older"}));
  // At the next renewal both have ended.
  Advance(absl::Minutes(37));
  EXPECT_TRUE(Becomes([&] { return now_kept() == std::vector<std::string>{"run"}; }));
}

TEST_F(TrialTokensTest, ItsThreadHasTheAgentsOwnRights) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone acts as others";
  std::shared_ptr<TrialToken> token;
  {
    const ActAs acting(FileOwner{65534, 65534});
    token = For("run");
  }
  ASSERT_TRUE(AskedTimes(1));
  EXPECT_EQ(asked()[0].with_files_of, 0);
}

TEST_F(TrialTokensTest, EndsAtOnceWhileACallHangs) {
  {
    const absl::MutexLock lock(&masters_.mu);
    masters_.hangs = true;
  }
  const auto a = For("a");
  const auto b = For("b");
  ASSERT_TRUE(AskedTimes(1));
  const SteadyTime begin = SteadyTime::Now();
  ::testing::internal::CaptureStderr();
  tokens_->Stop();
  EXPECT_LT(SteadyTime::Now() - begin, kPatience);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
  EXPECT_THAT(asked(), SizeIs(1)) << "the next call is not begun";
  EXPECT_EQ(For("c"), nullptr);
  tokens_->Stop();
}

TEST_F(TrialTokensTest, WithoutAnythingToFetchWithNothingIsAsked) {
  Make({});
  EXPECT_EQ(For("run"), nullptr);
  EXPECT_EQ(tokens_->OwnFor(kServer), "");
  Make({.own_token = "own",
        .shows_own = [](const std::string& server) { return server == "own:1"; }});
  EXPECT_EQ(For("run"), nullptr) << "another user named that master";
  EXPECT_EQ(tokens_->OwnFor(kServer), "");
  EXPECT_NE(tokens_->For("own:1", "vision", "run"), nullptr);
  tokens_ =
      std::make_unique<TrialTokens>(TrialTokens::Options{.own_token = "own"}, nullptr, clock_);
  EXPECT_EQ(For("run"), nullptr) << "in plain";
  Make({.has_certificate = true});
  const std::size_t before = asked().size();
  const auto token = For("run");
  ASSERT_NE(token, nullptr);
  ASSERT_TRUE(AskedTimes(before + 1));
  EXPECT_EQ(asked().back().with, "") << "the certificate's";
}

TEST_F(TrialTokensTest, OfMoreTrialsThanThereIsRoomForTheOthersShowTheAgentsOwn) {
  std::vector<std::shared_ptr<TrialToken>> held;
  for (std::size_t i = 0; i < TrialTokens::kTrialsMax; ++i) {
    held.push_back(For(absl::StrCat(i)));
    ASSERT_NE(held.back(), nullptr) << i;
  }
  EXPECT_EQ(For("one more"), nullptr);
  EXPECT_NE(For("7"), nullptr) << "which is there";
  held[3].reset();
  EXPECT_NE(For("one more"), nullptr);
}

}  // namespace
}  // namespace stepwell::agent
