// The loop that takes and renews the ownership: on a store in memory, with streams, heads and registry as they are.
#include "server/ownership_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "server/head_follower.h"
#include "server/trial_keeper.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

class OwnershipLoopTest : public IngestStreamTest {
 protected:
  // What of the one before is still there as the next one is told of.
  struct Met {
    std::int64_t epoch = -1;
    Uuid incarnation = {};
  };

  OwnershipLoopTest() : keeper_(store_, registry_, RealClock::Get()) {
    state_.SetIncarnation(*store_.ReadIncarnation());
    // A start begins with no ownership.
    state_.EndOwnership(state_.epoch(), [] {});
  }

  // Until it owns the database.
  void Start(absl::Duration renew_interval) { Start(renew_interval, Recovery()); }
  void Start(absl::Duration renew_interval, const RecoveryParts& recovery) {
    StartOnly(renew_interval, recovery);
    ASSERT_TRUE(Await([&] { return state_.Get().ready(); }));
  }
  void StartOnly(absl::Duration renew_interval, const RecoveryParts& recovery) {
    loop_.emplace(OwnershipLoop::Options{.master_id = "master-a",
                                         .address = "here",
                                         .renew_interval = renew_interval,
                                         .standby_interval = absl::Milliseconds(20)},
                  OwnershipLoop::Parts{.recovery = recovery,
                                       .queue = queue_,
                                       .trial_keeper = keeper_,
                                       .director = director_,
                                       .on_change = [] {},
                                       .on_another_database =
                                           [this] {
                                             met_ = {state_.epoch(), state_.incarnation()};
                                           }});
    loop_->Start();
  }

  static bool Await(const std::function<bool()>& what) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(5);
    while (!what()) {
      if (deadline.HasPassed()) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }

  TrialKeeper keeper_;
  Met met_;  // the loop's, until it has stopped
  std::optional<OwnershipLoop> loop_;
};

TEST_F(OwnershipLoopTest, AnEpochWhoseLookFailedIsTheNextClaimsLast) {
  // The failing look is that of the claim, not of a renewal before.
  Start(absl::Hours(1));
  const std::int64_t first = state_.epoch();
  store_.FailNextLook(absl::DeadlineExceededError("it hangs"));
  state_.ReportLost(first);
  // Not after the ten seconds after which anybody may take it.
  ASSERT_TRUE(Await([&] { return state_.epoch() > first && state_.Get().ready(); }));
}

TEST_F(OwnershipLoopTest, ARenewalWhoseLookFailedIsTheDatabasesFaultAndLosesNothing) {
  Start(absl::Milliseconds(20));
  const std::int64_t first = state_.epoch();
  ::testing::internal::CaptureStderr();
  store_.FailNextLook(absl::DeadlineExceededError("it hangs"));
  const bool is_back = Await([&] { return !state_.Get().database_up; }) &&
                       Await([&] { return state_.Get().ready(); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("it hangs"));
  EXPECT_TRUE(is_back);
  EXPECT_EQ(state_.epoch(), first);
}

// Whose take-over waits until the ownership was renewed twice, as who stands by sees it.
class RenewedFolds final : public testing::NoFolds {
 public:
  explicit RenewedFolds(IngestStore& store) : store_(store) {}
  absl::StatusOr<FoldNo> NextFoldNo() override {
    for (int i = 0; i < 2 && is_renewed_; ++i) is_renewed_ = AwaitRenewal();
    return NoFolds::NextFoldNo();
  }
  bool is_renewed() const { return is_renewed_; }

 private:
  bool AwaitRenewal() {
    double age = Age();
    for (const SteadyTime end = SteadyTime::Now() + absl::Seconds(3); !end.HasPassed();) {
      const double before = std::exchange(age, Age());
      if (age < before) return true;
    }
    return false;
  }
  double Age() {
    const auto other = store_.AcquireOwnership({.master_id = "master-b", .address = "there"});
    return other.ok() ? other->renewed_age_seconds : 0;
  }

  IngestStore& store_;
  std::atomic<bool> is_renewed_ = true;
};

TEST_F(OwnershipLoopTest, ATakeOverThatTakesLongRenewsTheOwnership) {
  RenewedFolds folds(store_);
  Start(absl::Milliseconds(20), {store_, folds, heads_, registry_, state_, stats_});
  EXPECT_TRUE(folds.is_renewed());
  loop_->Stop();
}

// Whose take-over lasts until another master has taken the database, and the loop has seen that.
class LostFolds final : public testing::NoFolds {
 public:
  explicit LostFolds(testing::FakeIngestStore& store) : store_(store) {}
  absl::StatusOr<FoldNo> NextFoldNo() override {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(5);
    bool is_taken = false;
    while (!is_taken && !deadline.HasPassed()) {
      OwnerClaim claim{.master_id = "master-b", .address = "there"};
      const auto seen = store_.AcquireOwnership(claim);
      // It may be renewed in between.
      claim.lapsed_renewal_us = seen.ok() ? seen->renewal_us : 0;
      const auto other = store_.AcquireOwnership(claim);
      is_taken = other.ok() && other->is_owner;
    }
    const int seen = store_.ownership_calls();
    while (store_.ownership_calls() == seen && !deadline.HasPassed()) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    is_lost_ = is_taken && !deadline.HasPassed();
    return NoFolds::NextFoldNo();
  }
  bool is_lost() const { return is_lost_; }

 private:
  testing::FakeIngestStore& store_;
  std::atomic<bool> is_lost_ = false;
};

TEST_F(OwnershipLoopTest, ATakeOverThatIsLostMeanwhileLeavesAStandbyNothing) {
  const std::int64_t epoch =
      store_.AcquireOwnership({.master_id = "master-a", .address = "here"})->epoch;
  OpenWriterRequest open;
  open.trials = kAllProjects;
  open.trial.external_id = "trial";
  open.writer = writer_;
  open.owner_epoch = epoch;
  const auto opened = store_.OpenWriter(open);
  ASSERT_TRUE(opened.ok()) << opened.status();
  WriterAdvance advance;
  advance.trial_id = opened->trial_id;
  advance.writer_no = opened->writer_no;
  advance.generation = opened->generation;
  advance.first_sequence = advance.last_sequence = 1;
  const auto committed = store_.Commit({.owner_epoch = epoch, .advances = {advance}});
  ASSERT_TRUE(committed.ok()) << committed.status();
  heads_.Clear();  // as after Lose
  LostFolds folds(store_);
  StartOnly(absl::Milliseconds(20), {store_, folds, heads_, registry_, state_, stats_});
  ASSERT_TRUE(Await([&] { return state_.Get().owner_id == "master-b"; }));
  EXPECT_TRUE(folds.is_lost());
  EXPECT_FALSE(heads_.Recovering(opened->trial_id)) << "reads would wait for a replay";
  const auto follows = HeadFollower::Start(heads_, TrialId{4711}, absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(follows.status())) << follows.status();
  EXPECT_TRUE(registry_.Trials().empty());
  loop_->Stop();
}

TEST_F(OwnershipLoopTest, AnotherDatabaseIsMetOnceAllOfTheOneBeforeHasEnded) {
  Start(absl::Milliseconds(20));
  const std::int64_t first = state_.epoch();
  const auto stream = NewStream();
  Begin(*stream, writer_);
  store_.RenewIncarnation();
  ASSERT_TRUE(Await([&] { return state_.epoch() > first; }));
  EXPECT_THAT(stream->end_status().message(), HasSubstr("the database is another one"));
  EXPECT_EQ(state_.incarnation(), *store_.ReadIncarnation());
  loop_->Stop();
  EXPECT_EQ(met_.epoch, 0) << "heads were of the one before, and still read";
  EXPECT_EQ(met_.incarnation, state_.incarnation());
}

}  // namespace
}  // namespace stepwell
