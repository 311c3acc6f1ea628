// Random caps, random ingest, random sweeps, random deletions of trials, with backends killed in the middle, or with
// merges, sweeps and moved rollups of other threads beside them: whatever happens, the samples that were sent are
// held or a gap says so, and of a deleted trial nothing is.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "tests/contract/caps_store_test.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Connect;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;
using testing::TestSeed;

constexpr std::int64_t kDay = 86'400;
// Of a property on a machine that does other things, too: several times what it takes.
constexpr absl::Duration kPropertyMax = absl::Minutes(3);

class CapsProperty : public CapsStoreTest {
 protected:
  // Of one thread.
  struct Dice {
    std::mt19937_64 random;
    std::uint64_t Below(std::uint64_t limit) { return random() % limit; }
  };

  std::uint64_t Below(std::uint64_t limit) { return dice_.Below(limit); }

  CapsTarget AnyTarget() {
    CapsTarget target;
    switch (Below(3)) {
      case 0:
        break;
      case 1:
        target.project = "default";
        break;
      default:
        target = Of(writers_[Below(writers_.size())]);
    }
    if (Below(2) == 0) target.metric_group = Below(2) == 0 ? "gpu" : "timing";
    return target;
  }
  void ChangeSomeCap() {
    Caps caps;
    std::vector<std::string> clear;
    switch (Below(5)) {
      case 0:
        caps.raw_age_seconds = static_cast<std::int64_t>(Below(3)) * kDay;
        break;
      case 1:
        caps.rollup_age_seconds = static_cast<std::int64_t>(Below(3)) * 2 * kDay;
        break;
      case 2:
        caps.trial_bytes = static_cast<std::int64_t>(Below(60'000));
        break;
      case 3:
        caps.series_samples = static_cast<std::int64_t>(Below(200));
        break;
      default:
        clear = {std::string(kCapFields[Below(4)].name)};
    }
    const auto set = caps_.Set(kEpoch, AnyTarget(), kAllProjects, caps, clear);
    // Rollups shorter than samples, a ninth pair, or a backend that was killed.
    if (!set.ok()) {
      EXPECT_TRUE(set.status().code() == absl::StatusCode::kInvalidArgument ||
                  set.status().code() == absl::StatusCode::kFailedPrecondition ||
                  set.status().code() == absl::StatusCode::kUnavailable)
          << set.status();
    }
  }
  void FillSome() {
    const OpenedWriter& writer = writers_[Below(writers_.size())];
    std::vector<TickTable> tables;
    for (std::uint64_t i = 0; i <= Below(3); ++i) {
      const int ticks = 1 + static_cast<int>(Below(100));
      TickTable table =
          Table(kSeriesCount, ticks, now_us_ - static_cast<std::int64_t>(Below(1000)));
      table.tick_group = 1 + static_cast<std::uint32_t>(Below(2));
      // Some series have no sample on this table.
      std::erase_if(table.columns, [&](const TickColumn&) { return Below(4) == 0; });
      if (!table.columns.empty()) tables.push_back(std::move(table));
    }
    Fill(writer, tables, now_us_);
  }
  // What may be refused and come again: beside others, and where backends are killed.
  bool MayComeAgain(const absl::Status& status) const {
    return (kills_ || beside_) && absl::IsUnavailable(status);
  }
  // Folds and merges are one thread's at a time, as in the master.
  void FoldNow(const WriterFold& fold) override {
    absl::StatusOr<FoldResult> folded = absl::UnavailableError("not folded yet");
    for (int i = 0; i < 1000 && absl::IsUnavailable(folded.status()); ++i) {
      absl::MutexLock lock(&folds_mu_);
      if (fold.to_sequence % 2 == 0) {
        const auto bulk = folds_->FoldBulk(kEpoch, {fold}, DayOf(now_us_));
        if (bulk.ok() && *bulk) folded = **bulk;
        if (!bulk.ok()) folded = bulk.status();
        if (!bulk.ok() || *bulk) continue;
      }
      folded = folds_->Fold(kEpoch, {fold});
      if (!folded.ok()) {
        ASSERT_TRUE(MayComeAgain(folded.status())) << folded.status();
      }
    }
    ASSERT_TRUE(folded.ok()) << folded.status();
  }
  void MergeBy(const MergeLimits& limits) {
    absl::MutexLock lock(&folds_mu_);
    const auto merged = folds_->Merge(kEpoch, limits);
    EXPECT_TRUE(merged.ok() || MayComeAgain(merged.status())) << merged.status();
    if (merged.ok()) merged_rows_ += merged->recent_rows_taken;
  }
  void MergeSome(Dice& dice) {
    MergeBy({.fold_no_max = Newest(),
             .ripe_tick_count = 1 + static_cast<std::int32_t>(dice.Below(100)),
             .now_us = now_us_,
             .rows_max = 1 + static_cast<std::int32_t>(dice.Below(20))});
  }
  // One step of MoveRollups: those of days that are over, and nothing is merged.
  void MoveSomeRollups(Dice& dice) {
    MergeBy({.fold_no_max = FoldNo{0},
             .now_us = now_us_,
             .rows_max = 1 + static_cast<std::int32_t>(dice.Below(20))});
  }
  void SweepSome(Dice& dice) {
    const auto swept = caps_.Sweep(
        kEpoch, {.now_us = now_us_, .duration_max = absl::Milliseconds(dice.Below(300))},
        kAllProjects);
    EXPECT_TRUE(swept.ok() || MayComeAgain(swept.status())) << swept.status();
    if (swept.ok()) ++sweep_count_;
  }
  // Until `stop`; the thread's chance follows from the seed.
  std::thread Beside(std::uint64_t thread_no, void (CapsProperty::*step)(Dice&),
                     const std::atomic<bool>& stop) {
    return std::thread([this, thread_no, step, &stop] {
      Dice dice{std::mt19937_64(seed_ + thread_no)};
      while (!stop && !HasFailure()) (this->*step)(dice);
    });
  }
  // Rounds while other threads merge, sweep and move rollups.
  void RunRoundsBeside(int rounds, std::uint64_t phase) {
    std::atomic<bool> stop = false;
    beside_ = true;
    std::vector<std::thread> threads;
    threads.push_back(Beside(3 * phase + 1, &CapsProperty::MergeSome, stop));
    threads.push_back(Beside(3 * phase + 2, &CapsProperty::SweepSome, stop));
    threads.push_back(Beside(3 * phase + 3, &CapsProperty::MoveSomeRollups, stop));
    RunRounds(rounds);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    beside_ = false;
  }
  // Another one comes in its place.
  void DeleteSome() {
    const TrialId trial_id = writers_[Below(writers_.size())].trial_id;
    const std::int64_t held = Number(
        absl::StrCat("select coalesce(sum(sample_count), 0)::bigint from stepwell.usage where "
                     "trial_id = ",
                     Value(trial_id)));
    absl::StatusOr<DeletedTrial> deleted = absl::UnavailableError("not asked yet");
    // Whose backend was killed comes again, whether it was deleted or not.
    for (int i = 0; i < 1000 && absl::IsUnavailable(deleted.status()); ++i) {
      deleted = caps_.Delete(kEpoch, {.trial_id = Value(trial_id)}, kAllProjects);
      EXPECT_TRUE(i == 0 || kills_ || beside_) << deleted.status();
    }
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    EXPECT_EQ(deleted->trial_id, trial_id);
    if (!kills_ && !beside_) {
      EXPECT_EQ(deleted->sample_count, held);
      EXPECT_TRUE(deleted->done);
    }
    ++deleted_count_;
    std::erase_if(sent_, [&](const auto& each) { return each.first.first == Value(trial_id); });
    const std::string name = absl::StrCat("in its place ", deleted_count_);
    bool has_series = false;
    for (OpenedWriter& writer : writers_) {
      if (writer.trial_id != trial_id) continue;
      writer = OpenWriter(name);
      if (!has_series) AddSeries(writer.trial_id, kSeriesCount);
      has_series = true;
    }
  }
  void RunRounds(int rounds) {
    SCOPED_TRACE(absl::StrCat("STEPWELL_TEST_SEED=", seed_));
    for (const std::string name : {"a", "a", "b"}) {
      if (writers_.size() == 3) break;
      writers_.push_back(OpenWriter(name));
      AddSeries(writers_.back().trial_id, kSeriesCount);
    }
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      ASSERT_LT(RealClock::Get().Monotonic() - begin_, kPropertyMax) << "in round " << round;
      switch (Below(16)) {
        case 0:
        case 1:
          ChangeSomeCap();
          break;
        case 2:
          DeleteSome();
          break;
        case 3:
        case 4:
          now_us_ += static_cast<std::int64_t>(Below(3)) * kDayUs / 2;
          break;
        case 5:
        case 6:
        case 7:
        case 8:
          SweepSome(dice_);
          break;
        case 9:
        case 10:
          MergeSome(dice_);
          break;
        default:
          FillSome();
      }
      if (round % 10 == 9 && !kills_ && !beside_) ExpectNothingVanishedBetweenMerges();
    }
  }
  // A merge under way has ticks of which some rows are still to come, so rows and ticks are compared
  // at the end only.
  void ExpectNothingVanishedBetweenMerges() {
    ExpectLedgerAddsUp(/*between_merges=*/true);
    ExpectSentIsHeldOrGap();
    ExpectDeletedIsGone();
  }
  void ExpectDeletedIsGone() {
    EXPECT_EQ(Text(testing::BuriedMismatchSql()), "") << "left of deleted trials";
    EXPECT_EQ(Number("select count(*) from stepwell.trials where deleted_time is not null "
                     "and attempt_count = 0"),
              deleted_count_)
        << "deleted, and done with";
    EXPECT_EQ(Number("select count(*) from stepwell.trials"),
              deleted_count_ + static_cast<std::int64_t>(LivingTrials().size()));
  }
  std::set<std::int64_t> LivingTrials() const {
    std::set<std::int64_t> trials;
    for (const OpenedWriter& writer : writers_) trials.insert(Value(writer.trial_id));
    return trials;
  }
  void Finish() {
    kills_ = false;
    MergeNow(now_us_);
    MergeNow(now_us_);
    // A leaf that had to wait for a merge is given up once more, then emptied.
    SweepAll(now_us_);
    SweepAll(now_us_);
    ExpectNothingVanished();
    ExpectDeletedIsGone();
    EXPECT_GT(deleted_count_, 0) << "of 200 rounds";
  }

  static constexpr int kSeriesCount = 9;
  const std::uint64_t seed_ = TestSeed();
  const absl::Duration begin_ = RealClock::Get().Monotonic();
  Dice dice_{std::mt19937_64(seed_)};
  std::vector<OpenedWriter> writers_;
  std::int64_t deleted_count_ = 0;
  std::atomic<std::int64_t> now_us_ = kNowUs;
  std::atomic<bool> kills_ = false;
  std::atomic<bool> beside_ = false;  // others merge and sweep
  absl::Mutex folds_mu_;              // of folds_
  std::atomic<std::int64_t> merged_rows_ = 0;
  std::atomic<int> sweep_count_ = 0;
};

TEST_F(CapsProperty, WhatWasSentIsHeldOrAGapSaysSo) {
  RunRounds(200);
  Finish();
}

TEST_F(CapsProperty, AKilledSweepTakesNothingWithoutAGap) {
  kills_ = true;
  std::thread killer([&] {
    const auto sql = Connect(url_);
    while (kills_) {
      const auto killed = sql->Exec(
          "select pg_terminate_backend(pid) from pg_stat_activity "
          "where datname = current_database() and application_name = 'stepwell-caps' "
          "and state <> 'idle' and random() < 0.2");
      EXPECT_TRUE(killed.ok()) << killed.status();
    }
  });
  RunRounds(200);
  kills_ = false;
  killer.join();
  Finish();
}

TEST_F(CapsProperty, MergesSweepsAndMovedRollupsOfOtherThreadsTakeNothingWithoutAGap) {
  for (std::uint64_t phase = 0; phase < 5 && !HasFailure(); ++phase) {
    RunRoundsBeside(40, phase);
    // What is left of a trial that was deleted during a sweep goes with later ones.
    ExpectLedgerAddsUp(/*between_merges=*/true);
    ExpectSentIsHeldOrGap();
  }
  EXPECT_GT(merged_rows_, 0);
  EXPECT_GT(sweep_count_, 200) << "those of its own rounds are some 50";
  Finish();
}

}  // namespace
}  // namespace stepwell
