// Rows of rollups in the database: few of them however short the stretches are, exact whatever comes
// late, whoever is killed, and beside rows of an earlier release; counted in the ledger to the byte.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/rollup_plan.h"
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
using testing::TestSeed;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kSecond = 1'000'000;
// As many ticks as a stretch of 36 s has here.
constexpr int kTicks = 36;

class RollupRows : public CapsStoreTest {
 protected:
  // One fold and one merge for each of `count` stretches of 36 s, as of samples each 10 ms.
  void MergeStretches(const OpenedWriter& writer, int series_count, int count) {
    for (int i = 0; i < count; ++i) {
      Fill(writer, {Table(series_count, kTicks, next_us_)});
      next_us_ += kTicks * kSecond;
      MergeNow();
    }
  }
  std::int64_t RowsOf(int series_no, int step_seconds) {
    return Number(absl::StrCat("select count(*) from stepwell.rollups where series_no = ",
                               series_no, " and step_seconds = ", step_seconds));
  }
  FoldNo NewestFold() {
    for (;;) {
      const auto newest = folds_->NextFoldNo();
      if (newest.ok()) return *newest;
    }
  }
  void ExpectExact() {
    EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "") << "recount/rollups";
    ExpectNothingVanished();
  }

  std::int64_t next_us_ = kNowUs;
};

TEST_F(RollupRows, AreFewHoweverShortTheStretchesAre) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  MergeStretches(writer, 2, 200);  // two hours
  EXPECT_EQ(Number("select count(*) from stepwell.metrics where series_no = 1"), 200);
  for (const int series_no : {1, 2}) {
    EXPECT_LE(RowsOf(series_no, 10), 2 + 15 + 6);
    EXPECT_LE(RowsOf(series_no, 60), 15 + 6);
  }
  EXPECT_GE(Number("select max(bucket_count) from stepwell.rollups where step_seconds = 10"),
            kRollupRowBuckets - 60);
  EXPECT_EQ(Number("select count(distinct (tick_no, step_seconds)) from stepwell.rollup_ticks"),
            Number("select count(*) from stepwell.rollup_ticks"));
  ExpectExact();
}

TEST_F(RollupRows, OfOneMergeAreJoinedAtOnce) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  // Four hours of a tick a second in one merge: four stretches, and rows of 360 buckets.
  Fill(writer, {Table(1, 4 * 3600)});
  MergeNow();
  EXPECT_EQ(RowsOf(1, 10), 4);
  EXPECT_EQ(RowsOf(1, 60), 1);
  ExpectExact();
}

TEST_F(RollupRows, TakeInSeriesThatAreNotInTheMergeAnyMore) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 3);
  MergeStretches(writer, 3, 8);
  MergeStretches(writer, 1, 30);
  EXPECT_LT(RowsOf(3, 10), 8) << "its rows are joined with those of the others";
  EXPECT_EQ(RowsOf(3, 10), RowsOf(2, 10));
  ExpectExact();
}

TEST_F(RollupRows, LateSamplesLandWhereTheyBelong) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  MergeStretches(writer, 2, 60);
  // Into the middle of what is joined already, a peak among them; and of a month ago.
  for (int i = 0; i < 20; ++i) {
    TickTable late = Table(2, 5, kNowUs + i * 100 * kSecond + 500);
    late.columns[0].values[2] = 1e6 + i;
    Fill(writer, {late, Table(1, 3, kNowUs - 30 * kDayUs + i * 60 * kSecond)});
    MergeNow();
  }
  MergeStretches(writer, 2, 40);
  EXPECT_EQ(Number("select count(*) from (select * from stepwell.decoded_rollups offset 0) r, "
                   "unnest(r.maxs) as m (high) where step_seconds = 10 and high >= 1e6"),
            20)
      << "no peak is lost, none is doubled";
  EXPECT_LE(RowsOf(1, 10), 60);
  ExpectExact();
}

// Narrow rows as releases before wrote them, one per stretch; the oldest do not say whose they are.
TEST_F(RollupRows, OfAnEarlierReleaseAreJoinedOrStay) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  MergeStretches(writer, 2, 14);
  // Wider than a small one but not full, and nobody's.
  Run("update stepwell.rollup_ticks set first_series_no = null where tick_no in "
      "(select tick_no from stepwell.rollup_ticks order by tick_no limit 6)");
  const std::string nobodys = Text(
      "select string_agg(tick_no || ':' || step_seconds, ' ' order by 1) "
      "from stepwell.rollup_ticks where first_series_no is null");
  MergeStretches(writer, 2, 30);
  EXPECT_EQ(Text("select string_agg(tick_no || ':' || step_seconds, ' ' order by 1) "
                 "from stepwell.rollup_ticks where first_series_no is null"),
            nobodys);
  EXPECT_EQ(Number("select count(*) from stepwell.rollup_ticks where tick_no in (select tick_no "
                   "from stepwell.rollup_ticks where first_series_no is not null) "
                   "and bucket_count < 6 and step_seconds = 10") < 44 - 6,
            true);
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
  ExpectTicksFit("rollups", "rollup_ticks", ", step_seconds");
}

TEST_F(RollupRows, ThatAreDamagedStopNoMerge) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  MergeStretches(writer, 1, 3);
  Run("update stepwell.rollups set min_form = 77 where tick_no = "
      "(select min(tick_no) from stepwell.rollups)");
  MergeStretches(writer, 1, 30);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 33);
  EXPECT_GT(Number("select count(*) from stepwell.rollups where min_form = 77"), 0);
  ExpectLedgerAddsUp();
}

TEST_F(RollupRows, ThatASweepGaveUpAreLeftAlone) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = kDay});
  // One more, and they would be joined.
  MergeStretches(writer, 2, static_cast<int>(kSmallRollupsMax));
  // A reader that is open keeps the leaf from being emptied.
  const auto reader = Connect(url_);
  ASSERT_TRUE(
      reader->ExecScript("begin isolation level repeatable read; select 1 from stepwell.usage")
          .ok());
  SweepAll(kNowUs + 3 * kDayUs);
  const std::int64_t given_up = Number("select count(*) from stepwell.rollup_ticks");
  ASSERT_EQ(Number("select sum(rollup_byte_count)::bigint from stepwell.usage"), 0);
  MergeStretches(writer, 2, 1);
  EXPECT_EQ(Number("select count(*) from stepwell.rollup_ticks"), given_up + 2);
  EXPECT_GT(Number("select sum(rollup_byte_count)::bigint from stepwell.usage"), 0);
  ASSERT_TRUE(reader->ExecScript("rollback").ok());
  SweepAll(kNowUs + 3 * kDayUs);
  SweepAll(kNowUs + 3 * kDayUs);
  EXPECT_EQ(Number("select count(*) from stepwell.rollups"), 0);
  ExpectNothingVanished();
}

// Whatever backend is killed: those of merges, among others.
TEST_F(RollupRows, AreExactWhoeverIsKilled) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 12);
  SetCaps(Of(writer, "timing"), {.rollup_age_seconds = 100 * kDay});  // two keep classes
  std::atomic<bool> over = false;
  std::thread killer([&, seed = random()] {
    std::mt19937_64 own(seed);
    const auto connection = Connect(url_);
    while (!over) {
      absl::SleepFor(absl::Milliseconds(1 + static_cast<int>(own() % 60)));
      connection
          ->Exec(
              "select pg_terminate_backend(pid) from pg_stat_activity where datname = "
              "current_database() and pid <> pg_backend_pid() and "
              "(query like '%stepwell.rollups%' or query like '%stepwell.recent%') limit 1")
          .status()
          .IgnoreError();
    }
  });
  std::int64_t at = kNowUs;
  for (int round = 0; round < 60; ++round) {
    std::vector<TickTable> tables;
    for (std::int64_t left = below(3); left >= 0; --left) {
      at += 30 * kSecond;
      const std::int64_t start = below(4) == 0 ? at - below(3000) * kSecond : at;
      TickTable table = Table(static_cast<int>(1 + below(12)), static_cast<int>(1 + below(40)),
                              start + below(1000));
      table.columns[0].values[0] = below(5) == 0 ? 1e9 : -3.5;
      tables.push_back(std::move(table));
    }
    const WriterProgress progress = Progress(writer);
    const std::uint64_t next = progress.committed_sequence + 1;
    CommitTo(writer, next, next);
    while (Progress(writer).folded_sequence < next) {
      folds_->Fold(kEpoch, {FoldOf(writer, progress.folded_sequence, next, tables)})
          .status()
          .IgnoreError();
    }
    for (std::int64_t calls = below(4); calls > 0; --calls) {
      folds_
          ->Merge(kEpoch, {.fold_no_max = NewestFold(),
                           .ripe_tick_count = 1,
                           .now_us = kNowUs,
                           .rows_max = static_cast<std::int32_t>(1 + below(100))})
          .status()
          .IgnoreError();
    }
  }
  over = true;
  killer.join();
  Reopen();
  MergeNow();
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
  ExpectLedgerAddsUp();
  EXPECT_GT(Number("select max(bucket_count) from stepwell.rollups"), 40) << "some were joined";
}

}  // namespace
}  // namespace stepwell
