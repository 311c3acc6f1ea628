// Rows of rollups in the database: never touched again once they are in a leaf; few of them however short the stretches are, exact whatever comes
// late, whoever is killed, and beside rows of an earlier release; counted in the ledger to the byte.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/fold_plan.h"
#include "storage/pg_rollup_move.h"
#include "storage/pg_row_copy.h"
#include "storage/rollup_plan.h"
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
using testing::TestSeed;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kSecond = 1'000'000;
// In leaves, and where they wait to be joined.
constexpr char kAllRows[] = "(table stepwell.rollups union all table stepwell.recent_rollups) r";
constexpr char kAllGrids[] =
    "(table stepwell.rollup_ticks union all table stepwell.recent_rollup_ticks) t";
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
    return Number(absl::StrCat("select count(*) from ", kAllRows, " where series_no = ", series_no,
                               " and step_seconds = ", step_seconds));
  }
  FoldNo NewestFold() {
    for (;;) {
      const auto newest = folds_->NextFoldNo();
      if (newest.ok()) return *newest;
    }
  }
  // Whoever takes a row out of a leaf, or changes it, fails.
  void FreezeLeaves() {
    Run("create function stepwell.is_frozen() returns trigger language plpgsql as "
        "$$ begin raise exception 'rows in leaves stay as they are'; end $$");
    for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks"}) {
      Run(absl::StrCat("create trigger is_frozen before update or delete on stepwell.", table,
                       " for each row execute function stepwell.is_frozen()"));
    }
  }
  std::string Decoded() {
    return Text(
        "select md5(string_agg(r::text, E'\\n' order by r::text)) from stepwell.decoded_rollups r");
  }
  std::int64_t Waiting() {
    return Number(
        "select (select count(*) from stepwell.recent_rollups) + "
        "(select count(*) from stepwell.recent_rollup_ticks)");
  }
  // Of the segment that has the rows of the day of kNowUs.
  static std::string Segment(const char* table) {
    return RollupSegment(table, RollupSegmentOf(DayOf(kNowUs))).c_str();
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
  FreezeLeaves();
  MergeStretches(writer, 2, 200);  // two hours
  EXPECT_EQ(Number("select count(*) from stepwell.metrics where series_no = 1"), 200);
  for (const int series_no : {1, 2}) {
    EXPECT_LE(RowsOf(series_no, 10), 2 + 15 + 6);
    EXPECT_LE(RowsOf(series_no, 60), 15 + 6);
  }
  EXPECT_GE(Number("select max(bucket_count) from stepwell.rollups where step_seconds = 10"),
            kRollupRowBuckets - 60);
  EXPECT_EQ(Number(absl::StrCat("select count(distinct (tick_no, step_seconds)) from ", kAllGrids)),
            Number(absl::StrCat("select count(*) from ", kAllGrids)));
  EXPECT_EQ(Number("select count(*) from stepwell.rollups where bucket_count < 240"), 0)
      << "in the leaf is what nobody joins any more";
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

// As of a writer two of whose refs are one series. A stretch that is a row alone: nothing is joined with it.
TEST_F(RollupRows, OfOneSeriesTwiceInAStretchAreOne) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  TickTable table = Table(1, 3600);
  table.columns.push_back(table.columns[0]);
  table.columns[1].values[1800] = 1e6;
  Fill(writer, {table});
  MergeNow();
  EXPECT_EQ(RowsOf(1, 10), 1);
  EXPECT_EQ(RowsOf(1, 60), 1);
  EXPECT_EQ(Number("select sum(n)::bigint from stepwell.decoded_rollups r, unnest(r.counts) n "
                   "where step_seconds = 10"),
            7200);
  EXPECT_EQ(Number("select max(m)::bigint from stepwell.decoded_rollups r, unnest(r.maxs) m"),
            1'000'000);
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
TEST_F(RollupRows, OfAnEarlierReleaseStayInTheirLeaf) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  MergeStretches(writer, 2, 14);
  MoveRollups(kNowUs + 2 * kDayUs);
  Run("update stepwell.rollup_ticks set first_series_no = null where tick_no in "
      "(select tick_no from stepwell.rollup_ticks order by tick_no limit 6)");
  FreezeLeaves();
  MergeStretches(writer, 2, 30);
  EXPECT_EQ(Number("select count(*) from stepwell.rollup_ticks where bucket_count < 6"), 2 * 14);
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
  ExpectRollupTicksFit();
}

TEST_F(RollupRows, GoIntoTheirLeafWhenTheDayIsOver) {
  const OpenedWriter writer = OpenWriter("t"), other = OpenWriter("other");
  AddSeries(writer.trial_id, 3);
  AddSeries(other.trial_id, 1);
  SetCaps(Of(writer, "timing"), {.rollup_age_seconds = 100 * kDay});  // two keep classes
  MergeStretches(writer, 3, 40);
  MergeStretches(other, 1, 2);
  ASSERT_GT(Waiting(), 0);
  const std::string before = Decoded();
  const std::string ledger = Text(
      "select string_agg(u::text, ' ' order by u::text) "
      "from stepwell.usage u");
  FreezeLeaves();
  MoveRollups(kNowUs);
  EXPECT_GT(Waiting(), 0) << "more may come to them";
  MoveRollups(kNowUs + 2 * kDayUs);
  EXPECT_EQ(Waiting(), 0);
  EXPECT_EQ(Decoded(), before);
  EXPECT_EQ(Text("select string_agg(u::text, ' ' order by u::text) from stepwell.usage u"), ledger);
  ExpectExact();
  // What is merged later still is written there at once.
  Fill(writer, {Table(3, kTicks, next_us_)});
  MergeNow(kNowUs + 2 * kDayUs);
  EXPECT_EQ(Waiting(), 0);
  ExpectExact();
}

// However many rows a grid has, it moves with all of them; no more grids than asked for go with it.
TEST_F(RollupRows, MoveByTheNumberOfTheirRows) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 5);
  MergeStretches(writer, 5, 3);
  const std::string before = Decoded();
  const auto sql = Connect(url_);
  const std::int64_t grids = Number("select count(*) from stepwell.recent_rollup_ticks");
  ASSERT_GE(grids, 2);
  const RollupMove one = {.leaf = {0, DayOf(kNowUs)}, .rows_max = 1, .leaves_merges_alone = false};
  for (std::int64_t moved = 0; moved < grids; ++moved) {
    const auto count = stepwell::MoveRollups(*sql, one);
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(*count, 1);
    EXPECT_EQ(Decoded(), before);
  }
  EXPECT_EQ(*stepwell::MoveRollups(*sql, one), 0);
  EXPECT_EQ(Waiting(), 0);
  ExpectExact();
}

TEST_F(RollupRows, OfALeafThatRefusesThemKeepNoOthersWaiting) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  MergeStretches(writer, 2, 3);
  Fill(writer, {Table(2, kTicks, kNowUs + kDayUs)}, kNowUs + kDayUs);
  MergeNow();
  const std::string day = absl::StrCat("date '1970-01-01' + ", DayOf(kNowUs));
  const auto waiting = [&](const char* is_day) {
    return Number(absl::StrCat("select count(*) from stepwell.recent_rollups where received_day ",
                               is_day, " ", day));
  };
  ASSERT_GT(waiting("="), 0);
  ASSERT_GT(waiting(">"), 0);
  Run("create function stepwell.is_refused() returns trigger language plpgsql as "
      "$$ begin raise exception 'a damaged page'; end $$");
  Run(absl::StrCat("create trigger is_refused before insert on stepwell.",
                   LeafName("rollups", 0, DayOf(kNowUs)),
                   " for each row execute function stepwell.is_refused()"));
  int failed_count = 0;
  for (int calls = 0; calls < 20; ++calls) {
    const auto moved =
        folds_->Merge(kEpoch, {.fold_no_max = FoldNo{0}, .now_us = kNowUs + 3 * kDayUs});
    failed_count += moved.ok() ? 0 : 1;
  }
  EXPECT_EQ(failed_count, 1) << "it is not tried again at once";
  EXPECT_GT(waiting("="), 0);
  EXPECT_EQ(waiting(">"), 0);
}

TEST_F(RollupRows, ThatAllWentLeaveAnEmptySegment) {
  // Of a day whose segment is not today's.
  const std::int32_t today = DayOf(absl::ToUnixMicros(absl::Now()));
  const bool same = RollupSegmentOf(today) == RollupSegmentOf(DayOf(kNowUs));
  const std::int64_t received_us = kNowUs + (same ? kDayUs : 0);
  const std::string size =
      absl::StrCat("select pg_relation_size('",
                   RollupSegment("rollups", RollupSegmentOf(DayOf(received_us))).c_str(), "')");
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  Fill(writer, {Table(2, kTicks, received_us)}, received_us);
  MergeNow(received_us);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_GT(Number(size), 0) << "rows wait there";
  const auto reader = Connect(url_);
  ASSERT_TRUE(
      reader->ExecScript("begin isolation level repeatable read; select 1 from stepwell.usage")
          .ok());
  MoveRollups(received_us + 2 * kDayUs);
  for (int times = 0; times < 2; ++times) ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_GT(Number(size), 0) << "somebody's snapshot has them still";
  const auto seen = reader->Exec("select count(*) from stepwell.decoded_rollups");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->Int64(0, 0), 4);
  ASSERT_TRUE(reader->ExecScript("rollback").ok());
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_EQ(Number(size), 0);
  ExpectExact();
}

TEST_F(RollupRows, ThatAreDamagedStopNoMerge) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  MergeStretches(writer, 1, 3);
  Run(absl::StrCat("update ", Segment("rollups"), " set min_form = 77 where tick_no = ",
                   "(select min(tick_no) from ", Segment("rollups"), ")"));
  MergeStretches(writer, 1, 30);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 33);
  EXPECT_GT(Number("select count(*) from stepwell.recent_rollups where min_form = 77"), 0);
  ExpectLedgerAddsUp();
  MoveRollups(kNowUs + 2 * kDayUs);
  EXPECT_EQ(Waiting(), 0);
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
  EXPECT_EQ(Waiting(), 0);
  const std::int64_t given_up = Number(absl::StrCat("select count(*) from ", kAllGrids));
  ASSERT_EQ(Number("select sum(rollup_byte_count)::bigint from stepwell.usage"), 0);
  MergeStretches(writer, 2, 1);
  EXPECT_EQ(Number(absl::StrCat("select count(*) from ", kAllGrids)), given_up + 2);
  EXPECT_GT(Number("select sum(rollup_byte_count)::bigint from stepwell.usage"), 0);
  ASSERT_TRUE(reader->ExecScript("rollback").ok());
  SweepAll(kNowUs + 3 * kDayUs);
  SweepAll(kNowUs + 3 * kDayUs);
  EXPECT_EQ(Number(absl::StrCat("select count(*) from ", kAllRows)), 0);
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
              "(query like '%stepwell.rollups%' or query like '%stepwell.recent%' or "
              "query like '%metrics_k%') limit 1")
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
      const WriterFold fold = FoldOf(writer, progress.folded_sequence, next, tables);
      if (below(3) == 0) {
        folds_->FoldBulk(kEpoch, {fold}, DayOf(kNowUs)).status().IgnoreError();
      } else {
        folds_->Fold(kEpoch, {fold}).status().IgnoreError();
      }
    }
    for (std::int64_t calls = below(4); calls > 0; --calls) {
      folds_
          ->Merge(kEpoch, {.fold_no_max = NewestFold(),
                           .ripe_tick_count = 1,
                           .now_us = round > 45 && below(4) == 0 ? kNowUs + 2 * kDayUs : kNowUs,
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
  EXPECT_GT(Number(absl::StrCat("select max(bucket_count) from ", kAllRows)), 40)
      << "some were joined";
  const std::string before = Decoded();
  MoveRollups(kNowUs + 2 * kDayUs);
  EXPECT_EQ(Waiting(), 0);
  EXPECT_EQ(Decoded(), before);
}

}  // namespace
}  // namespace stepwell
