#include "server/token_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/token_text.h"
#include "tests/fakes/fake_token_store.h"

namespace stepwell {
namespace {

// Real time: the thread looks once a second.
class TokenLoopTest : public ::testing::Test {
 protected:
  ~TokenLoopTest() override { unlink(path_.c_str()); }
  NewToken Add() {
    const NewToken token = MakeToken();
    EXPECT_TRUE(
        store_.Create({.id = token.id, .digest = token.digest, .name = "ci", .grants = {"admin"}})
            .ok());
    return token;
  }
  bool IsKnown(const NewToken& token) { return guard_->IdentifyToken(token.text).ok(); }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "tokens-", getpid());
  FakeTokenStore store_;
  const std::shared_ptr<TokenGuard> guard_ = *TokenGuard::Open(path_, RealClock::Get());
  std::atomic<int> told_{0};
  TokenLoop loop_{{store_, *guard_, RealClock::Get(), [this] { ++told_; }}};
};

TEST_F(TokenLoopTest, LearnsAtOnceWhatWasMadeOrRevokedHere) {
  const NewToken token = Add();
  EXPECT_FALSE(IsKnown(token));
  ASSERT_TRUE(loop_.LearnNow().ok());
  EXPECT_TRUE(IsKnown(token));
  ASSERT_TRUE(store_.Revoke(token.id).ok());
  ASSERT_TRUE(loop_.LearnNow().ok());
  EXPECT_FALSE(IsKnown(token));
}

TEST_F(TokenLoopTest, KnowsWhatEndedBeforeItBegan) {
  const NewToken token = Add();
  ASSERT_TRUE(store_.Revoke(token.id).ok());
  ASSERT_TRUE(loop_.LearnNow().ok());
  EXPECT_TRUE(IsEndedTokenRefusal(guard_->IdentifyToken(token.text).status()));
  EXPECT_FALSE(IsEndedTokenRefusal(guard_->IdentifyToken(MakeToken().text).status()));
}

TEST_F(TokenLoopTest, SeesWhatAnotherMasterDidTellsWhoHoldsCallsAndNotesUse) {
  const NewToken revoked_elsewhere = Add();
  const NewToken other = Add();
  ASSERT_TRUE(loop_.LearnNow().ok());
  const Caller caller = *guard_->IdentifyToken(revoked_elsewhere.text);
  EXPECT_TRUE(IsKnown(other));
  // As another master would, before the thread is there.
  ASSERT_TRUE(store_.Revoke(revoked_elsewhere.id).ok());
  loop_.Start();
  for (int i = 0; i < 500 && told_ == 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_GT(told_, 0);
  EXPECT_TRUE(HasEnded(caller));
  loop_.Stop();
  EXPECT_EQ(store_.living_reads, 2) << "all are read when something changed, no more often";
  EXPECT_GE(store_.change_reads, 1);
  ASSERT_EQ(store_.used.size(), 1u) << "the one that lives";
  EXPECT_EQ(store_.used[0].first, other.id);
}

TEST_F(TokenLoopTest, WhatIsFetchedIsLearnedByItself) {
  const NewToken maker = Add();
  ASSERT_TRUE(loop_.LearnNow().ok());
  const int reads = store_.living_reads;
  const auto fetch = [&] {
    const NewToken made = MakeToken();
    TokenFetch asked{.id = made.id, .digest = made.digest, .name = "fetched by ci"};
    asked.grant = "ingest:vision/run";
    asked.made_by = maker.id;
    asked.lifetime = absl::Hours(1);
    EXPECT_TRUE(store_.Fetch(asked).ok());
    return made;
  };
  const NewToken here = fetch();
  EXPECT_FALSE(IsKnown(here));
  ASSERT_TRUE(loop_.LearnFetchedNow(here.id).ok());
  EXPECT_TRUE(IsKnown(here));
  const NewToken elsewhere = fetch();
  loop_.Start();
  for (int i = 0; i < 500 && !IsKnown(elsewhere); ++i) absl::SleepFor(absl::Milliseconds(10));
  loop_.Stop();
  EXPECT_TRUE(IsKnown(elsewhere));
  EXPECT_EQ(store_.living_reads, reads) << "not all are read for one";
  EXPECT_EQ(store_.fetched_reads, 2);
  ASSERT_TRUE(store_.Revoke(maker.id).ok());
  ASSERT_TRUE(loop_.LearnFetchedNow(MakeToken().id).ok());
  EXPECT_FALSE(IsKnown(here)) << "what was revoked meanwhile is seen, too";
  EXPECT_FALSE(IsKnown(elsewhere));
}

TEST_F(TokenLoopTest, ADatabaseThatFailsConfirmsNothing) {
  const NewToken token = Add();
  store_.status = absl::UnavailableError("connection refused");
  EXPECT_FALSE(loop_.LearnNow().ok());
  EXPECT_EQ(guard_->IdentifyToken(token.text).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(TokenLoopTest, WhatEndedIsToldWhileTheDatabaseHangs) {
  const NewToken token = Add();
  ASSERT_TRUE(loop_.LearnNow().ok());
  const Caller caller = *guard_->IdentifyToken(token.text);
  absl::Notification answers;
  store_.before_change_read = [&] { answers.WaitForNotification(); };
  loop_.EndNow(token.id);
  EXPECT_TRUE(HasEnded(caller));
  EXPECT_FALSE(IsKnown(token));
  loop_.Start();
  for (int i = 0; i < 500 && told_ == 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_GT(told_, 0);
  answers.Notify();
  loop_.Stop();
}

TEST_F(TokenLoopTest, WhatIsRevokedHereIsToldWithoutWaitingForTheNextLook) {
  const NewToken token = Add();
  ASSERT_TRUE(loop_.LearnNow().ok());
  loop_.Start();
  // Far more of them than looks that come by themselves.
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 20; ++i) {
    const NewToken each = Add();
    ASSERT_TRUE(loop_.LearnNow().ok());
    const int before = told_;
    loop_.EndNow(each.id);
    for (int j = 0; j < 5000 && told_ == before; ++j) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_TRUE(store_.Revoke(each.id).ok());
    EXPECT_GT(told_, before);
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  loop_.Stop();
}

// Read before the revocation was there, and answered after it.
TEST_F(TokenLoopTest, AnOlderListOfTheDatabaseRevivesNothing) {
  const NewToken token = Add();
  const NewToken other = Add();
  ASSERT_TRUE(loop_.LearnNow().ok());
  absl::Notification is_read;
  absl::Notification answers;
  store_.before_living_answer = [&] {
    is_read.Notify();
    answers.WaitForNotification();
  };
  std::thread learner([&] { EXPECT_TRUE(loop_.LearnNow().ok()); });
  is_read.WaitForNotification();
  ASSERT_TRUE(store_.Revoke(token.id).ok());
  loop_.EndNow(token.id);
  answers.Notify();
  learner.join();
  EXPECT_FALSE(IsKnown(token));
  EXPECT_TRUE(IsKnown(other));
}

}  // namespace
}  // namespace stepwell
