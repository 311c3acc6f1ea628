// Folds into leaves: what a fold and a merge would have made in two transactions, made in one. What must hold at
// each commit: rows, their rollups, the ledger and the writer's mark agree; each sample is there once. What it must
// survive: a leaf that refuses or is gone, caps of before, a merge that is in the middle of the same stretch or of
// another trial's, a trial that is deleted, sweeps that want the same rows. (A COMMIT of which nobody hears:
// pg_store_faults_test; kills: rollup_rows_test and kill_points_test.)
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/fold_plan.h"
#include "storage/rollup_ring.h"
#include "tests/contract/caps_store_test.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Connect;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;
using testing::RollupMismatchSql;
using testing::Rollups;
using testing::Samples;
using testing::TestSeed;

constexpr std::int64_t kHourUs = 3'600'000'000;

class BulkFold : public CapsStoreTest {
 protected:
  // As FoldLoop: what is refused is folded the other way.
  void FoldNow(const WriterFold& fold) override {
    const auto folded = folds_->FoldBulk(kEpoch, {fold}, DayOf(kNowUs));
    ASSERT_TRUE(folded.ok()) << folded.status();
    if (*folded) {
      ++bulk_count_;
    } else {
      const auto otherwise = folds_->Fold(kEpoch, {fold});
      ASSERT_TRUE(otherwise.ok()) << otherwise.status();
    }
  }
  void FillAndCount(const OpenedWriter& writer, const std::vector<TickTable>& tables) {
    Fill(writer, tables);
    Count(writer, tables, expected_);
  }
  std::int64_t Waiting() {
    return Number(
        "select (select count(*) from stepwell.recent) + "
        "(select count(*) from stepwell.recent_ticks)");
  }
  void ExpectExact() {
    EXPECT_EQ(ReadSamples(), expected_);
    EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "") << "recount/rollups";
    ExpectNothingVanished();
  }
  // Inserts into leaves of metrics fail.
  void RefuseLeaves() {
    Run("create function stepwell.refuses() returns trigger language plpgsql as "
        "$$ begin raise exception 'no room in this leaf'; end $$");
    Run("create trigger refuses before insert on stepwell.metrics for each row execute function "
        "stepwell.refuses()");
  }

  Samples expected_;
  int bulk_count_ = 0;
};

TEST_F(BulkFold, MakesRowsAndRollupsOfLeavesInOneTransaction) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 3);
  CommitTo(writer, 1, 2);
  const std::vector<TickTable> tables = {Table(3, 5000)};
  const auto folded = folds_->FoldBulk(kEpoch, {FoldOf(writer, 0, 2, tables)}, DayOf(kNowUs));
  ASSERT_TRUE(folded.ok()) << folded.status();
  ASSERT_TRUE(folded->has_value());
  EXPECT_EQ((*folded)->row_count, 6) << "two stretches";
  EXPECT_EQ((*folded)->sample_count, 15'000);
  EXPECT_EQ(Progress(writer).folded_sequence, 2u);
  EXPECT_EQ(Waiting(), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics_k0_20241004"), 6);
  EXPECT_EQ(Number("select count(distinct tick_no) from stepwell.ticks"), 2);
  EXPECT_EQ(Number("select max(tick_no) / 65536 from stepwell.ticks"), Value((*folded)->fold_no));
  Count(writer, tables, expected_);
  EXPECT_EQ(ReadSamples(), expected_);
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
  ExpectUsageAddsUp();
  EXPECT_EQ(folds_->FoldBulk(kEpoch, {FoldOf(writer, 0, 2, tables)}, 0).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "it is done";
  EXPECT_EQ(folds_->FoldBulk(kEpoch + 1, {FoldOf(writer, 2, 2, tables)}, 0).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(ReadSamples(), expected_);
}

TEST_F(BulkFold, WhatIsNoBulkWaitsInRecent) {
  folds_ = *PgFoldStore::Open({.url = url_}, journal_);
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 3);
  TickTable few = Table(1, 10);
  few.tick_group = 2;
  FillAndCount(writer, {Table(3, static_cast<int>(kBulkTicks)), few});
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 3);
  EXPECT_EQ(ReadSamples(), expected_);
  MergeNow();
  EXPECT_EQ(Waiting(), 0);
  ExpectExact();
}

TEST_F(BulkFold, OfOneTrialAlone) {
  const OpenedWriter one = OpenWriter("one"), other = OpenWriter("other");
  for (const OpenedWriter& writer : {one, other}) {
    AddSeries(writer.trial_id, 1);
    CommitTo(writer, 1, 1);
  }
  const std::vector<TickTable> tables = {Table(1, 10)};
  EXPECT_EQ(folds_->FoldBulk(kEpoch, {FoldOf(one, 0, 1, tables), FoldOf(other, 0, 1, tables)}, 0)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
}

TEST_F(BulkFold, JoinsNarrowRollupsAsMergesDo) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  for (int i = 0; i < 100; ++i) {
    FillAndCount(writer, {Table(2, 300, kNowUs + i * 300 * std::int64_t{1'000'000})});
  }
  const std::string rows =
      "select count(*) from (table stepwell.rollups union all table stepwell.recent_rollups) r "
      "where series_no = 1 and step_seconds = ";
  EXPECT_LE(Number(absl::StrCat(rows, 10)), 8 + 15 + 6) << "8 hours and 20 minutes";
  EXPECT_LE(Number(absl::StrCat(rows, 60)), 2 + 15 + 6);
  EXPECT_GE(Number("select max(bucket_count) from stepwell.rollups where step_seconds = 10"), 300);
  ExpectExact();
  // Nothing waits of a day that is over.
  const std::vector<TickTable> late = {Table(2, 30, kNowUs - kDayUs)};
  const WriterProgress at = Progress(writer);
  CommitTo(writer, at.committed_sequence + 1, at.committed_sequence + 1);
  const std::int64_t waiting = Number("select count(*) from stepwell.recent_rollups");
  const auto folded = folds_->FoldBulk(
      kEpoch, {FoldOf(writer, at.folded_sequence, at.committed_sequence + 1, late)},
      DayOf(kNowUs) + 1);
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_LE(Number("select count(*) from stepwell.recent_rollups"), waiting);
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
}

TEST_F(BulkFold, RowsGoIntoTheClassesOfTheirGroups) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 4);
  SetCaps(Of(writer, "timing"), {.raw_age_seconds = 86'400});
  FillAndCount(writer, {Table(4, 2000)});
  EXPECT_EQ(Number("select count(distinct keep_class) from stepwell.metrics"), 2);
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 2);
  // They change: what is prepared next goes by the new ones.
  SetCaps(Of(writer, "timing"), {.raw_age_seconds = 2 * 86'400});
  FillAndCount(writer, {Table(4, 2000, kNowUs + kHourUs)});
  EXPECT_EQ(Number("select count(distinct keep_class) from stepwell.metrics"), 3);
  EXPECT_EQ(Waiting(), 0);
  ExpectExact();
}

TEST_F(BulkFold, WhatALeafRefusesWaitsInRecentAndIsTriedAgainLater) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  FillAndCount(writer, {Table(2, 2000)});
  RefuseLeaves();
  FillAndCount(writer, {Table(2, 2000, kNowUs + kHourUs)});
  EXPECT_GT(Waiting(), 0);
  EXPECT_EQ(ReadSamples(), expected_);
  Run("drop trigger refuses on stepwell.metrics");
  FillAndCount(writer, {Table(2, 2000, kNowUs + 2 * kHourUs)});
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2) << "it rests";
  Reopen();
  FillAndCount(writer, {Table(2, 2000, kNowUs + 3 * kHourUs)});
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 4);
  MergeNow();
  ExpectExact();
}

TEST_F(BulkFold, WhatALeafThatIsGoneWouldHoldWaitsInRecent) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  CommitTo(writer, 1, 2);
  const std::vector<TickTable> lost = {Table(2, 10)}, kept = {Table(2, 2000, kNowUs + kHourUs)};
  ASSERT_TRUE(folds_->FoldBulk(kEpoch, {FoldOf(writer, 0, 1, lost)}, DayOf(kNowUs)).ok());
  for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks"}) {
    Run(absl::StrCat("drop table stepwell.", table, "_k0_20241004"));
  }
  const auto folded = folds_->FoldBulk(kEpoch, {FoldOf(writer, 1, 2, kept)}, DayOf(kNowUs));
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_FALSE(folded->has_value());
  EXPECT_EQ(Progress(writer).folded_sequence, 1u);
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 1, 2, kept)}).ok());
  MergeNow();
  Count(writer, kept, expected_);
  EXPECT_EQ(ReadSamples(), expected_);
}

// Two writers and two tick groups, which share series: each work joins narrow rollups of earlier ones.
TEST_F(BulkFold, JoinsTheRollupsOfSeveralWorksInOneTransaction) {
  const OpenedWriter one = OpenWriter("t"), two = OpenWriter("t");
  AddSeries(one.trial_id, 3);
  std::uint64_t sequence = 0;
  std::int64_t at_us = kNowUs;
  for (int round = 0; round < 40; ++round, at_us += 200'000'000) {
    ++sequence;
    std::vector<WriterFold> folds;
    std::vector<std::vector<TickTable>> tables(2);
    int index = 0;
    for (const OpenedWriter& writer : {one, two}) {
      CommitTo(writer, sequence, sequence);
      TickTable first = Table(3, 150, at_us + index), second = Table(2, 100, at_us + 50 + index);
      second.tick_group = 2;
      tables[index] = {first, second};
      Count(writer, tables[index], expected_);
      folds.push_back(FoldOf(writer, sequence - 1, sequence, tables[index]));
      ++index;
    }
    const auto folded = folds_->FoldBulk(kEpoch, folds, DayOf(kNowUs));
    ASSERT_TRUE(folded.ok() && *folded) << folded.status();
  }
  EXPECT_EQ(ReadSamples(), expected_);
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
  ExpectLedgerAddsUp();
  EXPECT_LT(Number("select count(*) from (table stepwell.rollups union all table "
                   "stepwell.recent_rollups) r where series_no = 1 and step_seconds = 60"),
            4 * (1 + 15 + 6));
  // A grid has the buckets of its own ticks and of those that it was joined with, and of no other.
  EXPECT_EQ(Number("select count(*) from stepwell.recent_rollup_ticks t where not exists (select "
                   "from stepwell.recent_rollups r where r.trial_id = t.trial_id and r.tick_no = "
                   "t.tick_no and r.writer_no = t.writer_no)"),
            0);
}

// What a COPY costs before its first row is as much as some dozens of rows do, and a writer of six timings has six.
TEST_F(BulkFold, OfManyWritersGoesWithOneCopyForEachTable) {
  std::vector<OpenedWriter> writers;
  for (int i = 0; i < 20; ++i) writers.push_back(OpenWriter("t"));
  AddSeries(writers[0].trial_id, 3);
  const std::vector<TickTable> first = {Table(3, 10)}, second = {Table(3, 100, kNowUs + kHourUs)};
  const auto fold = [&](std::uint64_t sequence, const std::vector<TickTable>& tables) {
    std::vector<WriterFold> folds;
    for (const OpenedWriter& writer : writers) {
      CommitTo(writer, sequence, sequence);
      Count(writer, tables, expected_);
      folds.push_back(FoldOf(writer, sequence - 1, sequence, tables));
    }
    const auto folded = folds_->FoldBulk(kEpoch, folds, DayOf(kNowUs));
    ASSERT_TRUE(folded.ok() && *folded) << folded.status();
  };
  fold(1, first);
  Run("create table stepwell.copied (relation text)");
  Run("create function stepwell.notes_copy() returns trigger language plpgsql as "
      "$$ begin insert into stepwell.copied values (tg_table_name); return null; end $$");
  const int segment = RollupSegmentOf(DayOf(kNowUs));
  const std::vector<std::string> tables = {"metrics_k0_20241004", "ticks_k0_20241004",
                                           absl::StrCat("recent_rollups_", segment),
                                           absl::StrCat("recent_rollup_ticks_", segment)};
  for (const std::string& table : tables) {
    Run(absl::StrCat("create trigger notes_copy after insert on stepwell.", table,
                     " for each statement execute function stepwell.notes_copy()"));
  }
  fold(2, second);
  for (const std::string& table : tables) {
    EXPECT_EQ(
        Number(absl::StrCat("select count(*) from stepwell.copied where relation = '", table, "'")),
        1)
        << table;
  }
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 20 * 2 * 3);
  EXPECT_EQ(ReadSamples(), expected_);
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
  ExpectUsageAddsUp();
}

// A join costs what it joins: a trial may have a hundred thousand series.
TEST_F(BulkFold, JoinsRollupsWithoutReadingTheSeriesOfTheTrial) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  FillAndCount(writer, {Table(2, 300)});  // which metric groups they are of is known from here on
  const auto other = Connect(url_);
  ASSERT_TRUE(other->Begin().ok());
  ASSERT_TRUE(other->Exec("lock table stepwell.series in access exclusive mode").ok());
  for (int i = 1; i < 30; ++i) {
    FillAndCount(writer, {Table(2, 300, kNowUs + i * 300 * std::int64_t{1'000'000})});
    if (bulk_count_ <= i) break;
  }
  EXPECT_EQ(bulk_count_, 30) << "the series were asked for";
  EXPECT_LT(Number("select count(*) from stepwell.recent_rollups where series_no = 1"),
            2 * (15 + 6))
      << "some were joined";
  ASSERT_TRUE(other->Rollback().ok());
  ExpectExact();
}

TEST_F(BulkFold, OneThatIsRefusedLeavesTheMergeOfAnotherTrialAsItWas) {
  const OpenedWriter merged = OpenWriter("merged"), refused = OpenWriter("refused");
  AddSeries(merged.trial_id, 30);
  AddSeries(refused.trial_id, 2);
  const std::vector<TickTable> tables = {Table(30, 20)}, bulk = {Table(2, 2000)};
  CommitTo(merged, 1, 1);
  CommitTo(refused, 1, 1);
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(merged, 0, 1, tables)}).ok());
  const MergeLimits some{
      .fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs, .rows_max = 5};
  const auto first = folds_->Merge(kEpoch, some);
  ASSERT_TRUE(first.ok() && first->more) << first.status();
  RefuseLeaves();
  const auto folded = folds_->FoldBulk(kEpoch, {FoldOf(refused, 0, 1, bulk)}, DayOf(kNowUs));
  ASSERT_TRUE(folded.ok() && !*folded) << folded.status();
  Run("drop trigger refuses on stepwell.metrics");
  MergeAll(some);
  Count(merged, tables, expected_);
  EXPECT_EQ(ReadSamples(), expected_);
  ExpectUsageAddsUp();
}

TEST_F(BulkFold, OfADeletedTrialMovesTheMarkAndKeepsNothing) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  CommitTo(writer, 1, 1);
  ASSERT_TRUE(caps_.Delete(kEpoch, {.external_id = "t"}, kAllProjects).ok());
  const std::vector<TickTable> tables = {Table(2, 2000)};
  const auto folded = folds_->FoldBulk(kEpoch, {FoldOf(writer, 0, 1, tables)}, DayOf(kNowUs));
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  EXPECT_EQ(Waiting(), 0);
}

TEST_F(BulkFold, InTheMiddleOfAMergeOfTheTrialTakesTheOtherWay) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 30);
  const std::vector<TickTable> first = {Table(30, 20)};
  Count(writer, first, expected_);
  CommitTo(writer, 1, 1);
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, first)}).ok());
  sent_[{Value(writer.trial_id), "gpu"}] += 15 * 20;
  sent_[{Value(writer.trial_id), "timing"}] += 15 * 20;
  const auto merged = folds_->Merge(
      kEpoch, {.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs, .rows_max = 5});
  ASSERT_TRUE(merged.ok() && merged->more) << merged.status();
  const std::int64_t in_leaves = Number("select count(*) from stepwell.metrics");
  ASSERT_LT(in_leaves, 30);
  FillAndCount(writer, {Table(30, 1500, kNowUs + kHourUs)});
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), in_leaves);
  MergeNow();
  ExpectExact();
}

// Beside sweeps that empty the leaves which these folds fill.
TEST_F(BulkFold, BesideSweepsNothingVanishesAndNobodyWaitsForEver) {
  std::mt19937_64 random(TestSeed());
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 6);
  SetCaps(Of(writer), {.raw_age_seconds = 86'400, .rollup_age_seconds = 4 * 86'400});
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> now_us = kNowUs;
  std::atomic<int> sweeps = 0;
  std::thread sweeper([&] {
    while (!stop) {
      const auto swept = caps_.Sweep(kEpoch, {.now_us = now_us}, kAllProjects);
      EXPECT_TRUE(swept.ok()) << swept.status();
      ++sweeps;
    }
  });
  int folds = 0;
  for (; folds < 40 || sweeps < 20; ++folds) {
    if (folds % 8 == 7) now_us += kDayUs;
    const std::int64_t start_us = now_us - static_cast<std::int64_t>(random() % 1000);
    Fill(writer, {NoisyTable(6, 100 + static_cast<int>(random() % 400), start_us)}, now_us);
    if (folds % 5 == 4) MergeNow(now_us);
  }
  stop = true;
  sweeper.join();
  EXPECT_GT(bulk_count_, 20);
  EXPECT_EQ(Number("select deadlocks from pg_stat_database where datname = current_database()"), 0);
  ExpectNothingVanished();
  SweepAll(now_us + 3 * kDayUs);
  ExpectNothingVanished();
}

}  // namespace
}  // namespace stepwell
