// A trial's life as the master stores it: on a store in memory and a clock that moves when told.
#include "server/trial_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/heads.h"
#include "server/ingest_stats.h"
#include "server/master_state.h"
#include "server/recovery.h"
#include "tests/fakes/fake_ingest_store.h"
#include "tests/fakes/stepped_clock.h"
#include "tests/unit/server/no_folds.h"

namespace stepwell {
namespace {

class TrialKeeperTest : public ::testing::Test {
 protected:
  TrialKeeperTest() { StartMaster(); }

  // A new master, which knows only what the store holds.
  void StartMaster() {
    registry_ = std::make_unique<WriterRegistry>(clock_);
    keeper_ = std::make_unique<TrialKeeper>(store_, *registry_, clock_);
    const auto owner = store_.AcquireOwnership({.master_id = "master-a", .address = "here"});
    ASSERT_TRUE(owner.ok()) << owner.status();
    epoch_ = owner->epoch;
    Heads heads;
    MasterState state;
    IngestStats stats;
    const auto taken = TakeOver({store_, folds_, heads, *registry_, state, stats}, epoch_);
    ASSERT_TRUE(taken.ok()) << taken.status();
  }

  OpenedWriter Open(const Uuid& writer, const std::string& trial = "trial") {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = trial;
    request.attempt_key = "start-1";
    request.writer = writer;
    request.owner_epoch = epoch_;
    const auto opened = store_.OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    EXPECT_TRUE(registry_->Claim(writer, *opened, nullptr));
    trial_id_ = opened->trial_id;
    return *opened;
  }

  // Its Close is committed and its stream lets go of it.
  void Close(const OpenedWriter& writer, WriterState state = WriterState::kClosed) {
    CommitGroupRequest request;
    request.owner_epoch = epoch_;
    request.received_time_us = absl::ToUnixMicros(clock_.Now());
    WriterAdvance& advance = request.advances.emplace_back();
    advance.trial_id = writer.trial_id;
    advance.writer_no = writer.writer_no;
    advance.generation = writer.generation;
    advance.first_sequence = writer.committed_sequence + 1;
    advance.last_sequence = writer.committed_sequence;
    advance.closing = state;
    const auto results = store_.Commit(request);
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->at(0).outcome, AdvanceOutcome::kCommitted);
    registry_->NoteState(writer.trial_id, writer.writer_no, state);
    registry_->Release(writer.trial_id, writer.writer_no, writer.generation);
  }

  // As stored after a look.
  TrialState Look() {
    keeper_->Look(epoch_);
    return store_.trial_state(trial_id_);
  }

  testing::FakeIngestStore store_;
  testing::NoFolds folds_;
  testing::SteppedClock clock_;
  std::unique_ptr<WriterRegistry> registry_;
  std::unique_ptr<TrialKeeper> keeper_;
  std::int64_t epoch_ = 0;
  TrialId trial_id_{};
  const Uuid first_ = Uuid::Random();
  const Uuid second_ = Uuid::Random();
};

TEST_F(TrialKeeperTest, SilenceMakesItLostAndAHeartbeatBringsItBack) {
  const OpenedWriter writer = Open(first_);
  EXPECT_EQ(Look(), TrialState::kRunning);
  clock_.Advance(absl::Seconds(60));
  EXPECT_EQ(Look(), TrialState::kRunning) << "60 s are still allowed";
  clock_.Advance(absl::Microseconds(1));
  EXPECT_EQ(Look(), TrialState::kLost);
  EXPECT_EQ(Look(), TrialState::kLost);
  registry_->Heard(writer.trial_id, writer.writer_no);
  EXPECT_EQ(Look(), TrialState::kRunning);
  clock_.Advance(absl::Seconds(61));
  EXPECT_EQ(Look(), TrialState::kLost) << "and it can be lost again";
}

TEST_F(TrialKeeperTest, AWallClockThatIsSetForwardLosesNobody) {
  const OpenedWriter writer = Open(first_);
  EXPECT_EQ(Look(), TrialState::kRunning);
  const std::int64_t stamp_us = registry_->Seen(writer.trial_id)[writer.writer_no].seen_time_us;
  clock_.SetBy(absl::Hours(2));
  EXPECT_EQ(Look(), TrialState::kRunning);
  clock_.Advance(absl::Seconds(60));
  EXPECT_EQ(Look(), TrialState::kRunning);
  registry_->Heard(writer.trial_id, writer.writer_no);
  const std::int64_t passed_us =
      registry_->Seen(writer.trial_id)[writer.writer_no].seen_time_us - stamp_us;
  EXPECT_EQ(absl::Microseconds(passed_us), absl::Hours(2) + absl::Seconds(60))
      << "people are shown the clock on the wall";
  clock_.Advance(absl::Seconds(61));
  EXPECT_EQ(Look(), TrialState::kLost) << "and it falls silent as any";
}

TEST_F(TrialKeeperTest, OneThatFallsSilentIsLostAfterAMinuteThoughTheWallClockWasSetBack) {
  Open(first_);
  EXPECT_EQ(Look(), TrialState::kRunning);
  clock_.SetBy(-absl::Hours(2));
  clock_.Advance(absl::Seconds(60));
  EXPECT_EQ(Look(), TrialState::kRunning);
  clock_.Advance(absl::Microseconds(1));
  EXPECT_EQ(Look(), TrialState::kLost);
  StartMaster();
  EXPECT_EQ(Look(), TrialState::kRunning) << "a master that starts waits for as long";
  clock_.SetBy(-absl::Hours(2));
  clock_.Advance(absl::Seconds(61));
  EXPECT_EQ(Look(), TrialState::kLost);
}

TEST_F(TrialKeeperTest, OneWriterThatIsHeardOfKeepsTheTrialRunning) {
  Open(first_);
  const OpenedWriter heard = Open(second_);
  clock_.Advance(absl::Seconds(61));
  registry_->Heard(heard.trial_id, heard.writer_no);
  EXPECT_EQ(Look(), TrialState::kRunning);
  Close(heard);
  EXPECT_EQ(Look(), TrialState::kLost) << "the silent one is all that is left";
}

TEST_F(TrialKeeperTest, AStreamThatEndsWithoutCloseDoesNotEndTheTrial) {
  const OpenedWriter writer = Open(first_);
  registry_->Release(writer.trial_id, writer.writer_no, writer.generation);
  EXPECT_EQ(Look(), TrialState::kRunning);
  clock_.Advance(absl::Seconds(61));
  EXPECT_EQ(Look(), TrialState::kLost);
}

TEST_F(TrialKeeperTest, CompletedOnceAllHaveClosedAndRunningAgainByAReopen) {
  const OpenedWriter one = Open(first_);
  const OpenedWriter two = Open(second_);
  Close(one);
  EXPECT_EQ(Look(), TrialState::kRunning);
  Close(two);
  EXPECT_EQ(Look(), TrialState::kCompleted);
  EXPECT_TRUE(registry_->Trials().empty()) << "what has ended is forgotten";
  const OpenedWriter again = Open(first_);
  EXPECT_EQ(again.generation, one.generation + 1);
  EXPECT_EQ(Look(), TrialState::kRunning);
  clock_.Advance(absl::Seconds(61));
  EXPECT_EQ(Look(), TrialState::kLost);
  Close(again);
  EXPECT_EQ(Look(), TrialState::kCompleted);
}

TEST_F(TrialKeeperTest, FailedOnceAllHaveEndedAndOneDied) {
  const OpenedWriter one = Open(first_);
  const OpenedWriter two = Open(second_);
  Close(one, WriterState::kDied);
  EXPECT_EQ(Look(), TrialState::kRunning) << "the other one goes on";
  Close(two);
  EXPECT_EQ(Look(), TrialState::kFailed);
}

TEST_F(TrialKeeperTest, ADeathIsRememberedThroughAReopenOfAnother) {
  const OpenedWriter one = Open(first_);
  Close(Open(second_), WriterState::kDied);
  Close(one);
  ASSERT_EQ(Look(), TrialState::kFailed);
  // The registry has forgotten the second; the first has the lower number.
  Close(Open(first_));
  EXPECT_EQ(Look(), TrialState::kFailed);
}

TEST_F(TrialKeeperTest, WritersOfAnEarlierMasterCount) {
  Close(Open(first_), WriterState::kDied);
  Open(second_);
  StartMaster();
  EXPECT_EQ(Look(), TrialState::kRunning) << "heard of when it was taken over";
  clock_.Advance(absl::Seconds(61));
  EXPECT_EQ(Look(), TrialState::kLost);
  Close(Open(second_));
  EXPECT_EQ(Look(), TrialState::kFailed) << "one died before this master";
}

TEST_F(TrialKeeperTest, AnEndThatTheEarlierMasterCouldNotStoreIsStoredByTheNext) {
  Close(Open(first_));
  ASSERT_EQ(store_.trial_state(trial_id_), TrialState::kRunning) << "it stopped before it looked";
  StartMaster();
  EXPECT_EQ(Look(), TrialState::kCompleted);
}

TEST_F(TrialKeeperTest, ADeletedTrialIsForgotten) {
  for (const bool is_closed : {true, false}) {
    SCOPED_TRACE(is_closed ? "closed" : "killed, and lost since");
    const OpenedWriter writer = Open(is_closed ? first_ : second_);
    ASSERT_EQ(Look(), TrialState::kRunning);
    if (is_closed) {
      Close(writer);
    } else {
      clock_.Advance(absl::Seconds(61));
    }
    store_.DropTrial(writer.trial_id);
    keeper_->Look(epoch_);
    EXPECT_TRUE(registry_->FactsOf(writer.trial_id).empty()) << "it is asked for each time";
    // A stream that still held it says so late.
    registry_->Heard(writer.trial_id, writer.writer_no);
    registry_->Release(writer.trial_id, writer.writer_no, writer.generation);
    EXPECT_TRUE(registry_->FactsOf(writer.trial_id).empty());
  }
}

TEST_F(TrialKeeperTest, AnEpochThatIsOverStoresNothing) {
  const std::int64_t before = epoch_;
  const OpenedWriter writer = Open(first_);
  StartMaster();
  Close(Open(first_));
  keeper_->Look(before);
  EXPECT_EQ(store_.trial_state(writer.trial_id), TrialState::kRunning);
  EXPECT_EQ(Look(), TrialState::kCompleted);
}

// A token of one trial opened and closed writers of it for so long that the look for its end took longer than the lease,
// and the standby took over: while it lasted nobody renewed.
TEST_F(TrialKeeperTest, TheEndOfATrialOfManyWritersIsReadAtOnce) {
  for (int i = 0; i < 3000; ++i) Close(Open(Uuid::Random()));
  const int reads = store_.writer_reads();
  EXPECT_EQ(Look(), TrialState::kCompleted);
  EXPECT_EQ(store_.writer_reads() - reads, 1);
  Close(Open(first_), WriterState::kDied);
  Close(Open(second_));
  EXPECT_EQ(Look(), TrialState::kFailed);
  EXPECT_EQ(store_.writer_reads() - reads, 2);
}

// On which each statement takes a while.
class SlowClock final : public Clock {
 public:
  explicit SlowClock(const Clock& clock) : clock_(clock) {}
  absl::Time Now() const override { return clock_.Now(); }
  absl::Duration Monotonic() const override { return passed_ += absl::Milliseconds(200); }

 private:
  const Clock& clock_;
  mutable absl::Duration passed_ = absl::ZeroDuration();
};

TEST_F(TrialKeeperTest, ALookThatHasNoTimeForAllTrialsGoesOnNextTime) {
  constexpr int kTrials = 20;
  std::vector<TrialId> ended;
  for (int i = 0; i < kTrials; ++i) {
    Close(Open(Uuid::Random(), absl::StrCat("trial-", i)));
    ended.push_back(trial_id_);
  }
  const auto stored = [&] {
    return std::count_if(ended.begin(), ended.end(), [&](TrialId trial_id) {
      return store_.trial_state(trial_id) == TrialState::kCompleted;
    });
  };
  const SlowClock slow(clock_);
  TrialKeeper keeper(store_, *registry_, slow);
  EXPECT_FALSE(keeper.Look(epoch_)) << "a renewal may be due";
  EXPECT_LT(stored(), 3);
  int looks = 1;
  for (; !keeper.Look(epoch_); ++looks) ASSERT_LT(looks, 10 * kTrials);
  EXPECT_EQ(stored(), kTrials) << "each has its turn";
  EXPECT_TRUE(registry_->Trials().empty());
}

}  // namespace
}  // namespace stepwell
