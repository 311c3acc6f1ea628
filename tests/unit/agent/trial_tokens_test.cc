// The thread that fetches: what it asks a master for, when, with what, and what it shows and says meanwhile.
#include "client/agent/trial_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kServer[] = "master:7817";
constexpr absl::Duration kPatience = absl::Seconds(30);

// Moves when told, and knows how often it was looked at: a thread that looks has done all that was due.
class WatchedClock final : public Clock {
 public:
  absl::Time Now() const override { return clock_.Now(); }
  absl::Duration Monotonic() const override {
    ++looks_;
    return clock_.Monotonic();
  }
  void Advance(absl::Duration by) { clock_.Advance(by); }
  std::uint64_t looks() const { return looks_; }

 private:
  FakeClock clock_;
  mutable std::atomic<std::uint64_t> looks_{0};
};

struct Asked {
  std::string server;
  std::string with;
  v1::TrialRef trial;
  absl::Duration at;
};

// Masters as they are told to be, all in one.
struct FakeMasters {
  explicit FakeMasters(const Clock& its_clock) : clock(its_clock) {}
  const Clock& clock;
  absl::Mutex mu;
  std::deque<absl::StatusOr<v1::FetchIngestTokenResponse>> answers ABSL_GUARDED_BY(mu);
  // Once those are used up; a token of an hour each where it is OK.
  absl::Status then ABSL_GUARDED_BY(mu);
  std::string silent_server ABSL_GUARDED_BY(mu);
  bool hangs ABSL_GUARDED_BY(mu) = false;
  bool renews ABSL_GUARDED_BY(mu) = false;
  bool is_cancelled ABSL_GUARDED_BY(mu) = false;
  std::vector<Asked> asked ABSL_GUARDED_BY(mu);
};

v1::FetchIngestTokenResponse TokenOf(const std::string& text, absl::Duration lives) {
  v1::FetchIngestTokenResponse response;
  response.set_text(text);
  response.mutable_token()->set_token_id(absl::StrCat("id of ", text.size()));
  response.mutable_token()->set_created_time_us(1'700'000'000'000'000);
  response.mutable_token()->set_expires_time_us(1'700'000'000'000'000 +
                                                absl::ToInt64Microseconds(lives));
  return response;
}

class FakeCalls : public TokenCalls {
 public:
  explicit FakeCalls(FakeMasters& masters) : masters_(masters) {}
  absl::StatusOr<v1::FetchIngestTokenResponse> Fetch(
      const std::string& server, const std::string& token,
      const v1::FetchIngestTokenRequest& request) override {
    const absl::Duration at = masters_.clock.Monotonic();
    const absl::MutexLock lock(&masters_.mu);
    masters_.asked.push_back({server, token, request.trial(), at});
    const auto goes_on = [this]() ABSL_SHARED_LOCKS_REQUIRED(masters_.mu) {
      return !masters_.hangs || masters_.is_cancelled;
    };
    masters_.mu.Await(absl::Condition(&goes_on));
    if (masters_.is_cancelled) return absl::CancelledError("cancelled");
    if (server == masters_.silent_server) return absl::DeadlineExceededError("silent");
    if (!masters_.answers.empty()) {
      auto answer = std::move(masters_.answers.front());
      masters_.answers.pop_front();
      return answer;
    }
    if (!masters_.then.ok()) return masters_.then;
    auto response = TokenOf(absl::StrCat("text-", ++made_), absl::Hours(1));
    response.set_renews(masters_.renews);
    return response;
  }
  void Cancel() override {
    const absl::MutexLock lock(&masters_.mu);
    masters_.is_cancelled = true;
  }

 private:
  FakeMasters& masters_;
  int made_ = 0;
};

class TrialTokensTest : public ::testing::Test {
 protected:
  TrialTokensTest() { Make({.own_token = "own"}); }
  void Make(TrialTokens::Options options) {
    tokens_.reset();
    {
      const absl::MutexLock lock(&masters_.mu);
      masters_.is_cancelled = false;
    }
    options.look_interval = absl::Microseconds(100);
    options.on_change = [this] { ++changes_; };
    tokens_ = std::make_unique<TrialTokens>(std::move(options),
                                            std::make_unique<FakeCalls>(masters_), clock_);
  }
  std::shared_ptr<TrialToken> For(const std::string& trial) {
    return tokens_->For(kServer, "vision", trial);
  }
  static bool Becomes(const std::function<bool()>& what) {
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    while (!what()) {
      if (deadline.HasPassed()) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  std::vector<Asked> asked() {
    const absl::MutexLock lock(&masters_.mu);
    return masters_.asked;
  }
  bool AskedTimes(std::size_t times) {
    return Becomes([&] { return asked().size() >= times; });
  }
  // All that is due by now was done: it looks twice in each round, and up to six times more where it asks.
  void Settle() {
    const std::uint64_t before = clock_.looks();
    ASSERT_TRUE(Becomes([&] { return clock_.looks() >= before + 20; }));
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    Settle();
  }
  void Answer(absl::StatusOr<v1::FetchIngestTokenResponse> answer) {
    const absl::MutexLock lock(&masters_.mu);
    masters_.answers.push_back(std::move(answer));
  }
  void Then(const absl::Status& status) {
    const absl::MutexLock lock(&masters_.mu);
    masters_.then = status;
  }

  WatchedClock clock_;
  FakeMasters masters_{clock_};
  std::atomic<int> changes_{0};
  std::unique_ptr<TrialTokens> tokens_;
};

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
  ASSERT_TRUE(AskedTimes(1));
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
  ASSERT_TRUE(AskedTimes(3));
  Settle();
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
    ASSERT_TRUE(AskedTimes(before + 1));
    for (int i = 0; i < 60; ++i) Advance(absl::Minutes(1));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
    EXPECT_EQ(token->shown().text, "");
    EXPECT_THAT(asked(), SizeIs(before + 13));
    Then(absl::OkStatus());
    Advance(absl::Minutes(5));
    EXPECT_NE(token->shown().text, "") << "it was upgraded meanwhile";
  }
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
  Advance(absl::Minutes(1));
  EXPECT_EQ(tokens_->ShownFor(kServer, run), "own");
  for (int i = 0; i < 10; ++i) Advance(absl::Hours(1));
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
  Advance(absl::Minutes(50));
  token = For("run");
  EXPECT_EQ(token->shown().text, "text-1");
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
  ASSERT_TRUE(AskedTimes(1));
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
  ASSERT_TRUE(AskedTimes(1));
  Settle();
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
  EXPECT_THAT(asked(), SizeIs(3)) << "those behind the first were not asked one by one";
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
