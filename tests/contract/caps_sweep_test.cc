// Ages: classes at merge, leaves that are given up, emptied and dropped, and what readers see beside it.
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/pg_fold_sql.h"
#include "tests/contract/caps_store_test.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Connect;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;
using testing::Samples;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kAnHourUs = 3'600'000'000;
// The first moment at which samples received at kNowUs are a day old.
constexpr std::int64_t kADayOldUs = 20'002 * kDayUs;

using CapsSweep = CapsStoreTest;

TEST_F(CapsSweep, EachGroupGetsItsClassAndEachClassItsTicks) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 7);
  SetCaps(Of(writer), {.raw_age_seconds = 3 * kDay});
  SetCaps({.metric_group = "gpu"}, {.raw_age_seconds = kDay});
  const std::vector<TickTable> tables = {Table(7, 600)};
  Fill(writer, tables);
  // Two series a call: the ticks of a class are written by the first that has one of its series.
  MergeAll({.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs, .rows_max = 2});
  Samples expected;
  Count(writer, tables, expected);
  EXPECT_EQ(ReadSamples(), expected);
  EXPECT_EQ(Text("select string_agg(k, ' ' order by k) from (select keep_class || ':' || "
                 "string_agg(series_no::text, ',' order by series_no) as k from stepwell.metrics "
                 "group by keep_class) x"),
            "1:2,4,6 2:1,3,5,7");
  EXPECT_EQ(Text("select string_agg(keep_class || array_to_string(series_nos, ','), ' ' "
                 "order by keep_class) from stepwell.ticks"),
            "12,4,6 21,3,5,7");
  EXPECT_EQ(Number("select count(*) from stepwell.recent_rollup_ticks"), 4)
      << "two steps, two classes";
  ExpectNothingVanished();
  EXPECT_EQ(
      Number("select count(*) from stepwell.samples(" + absl::StrCat(Value(writer.trial_id)) + ")"),
      7 * 600);
}

TEST_F(CapsSweep, AChangedCapCountsForLaterRows) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  FillAndMerge(writer, 2, 10);
  SetCaps(Of(writer), {.raw_age_seconds = kDay});
  FillAndMerge(writer, 2, 10, kNowUs + 1);
  SetCaps(Of(writer), {.raw_age_seconds = 2 * kDay, .rollup_age_seconds = 2 * kDay});
  FillAndMerge(writer, 2, 10, kNowUs + 2);
  EXPECT_EQ(Text("select string_agg(distinct keep_class::text, ',') from stepwell.metrics"),
            "0,1,2");
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 20);
  EXPECT_EQ(SweepAll(kADayOldUs + kDayUs).removed.sample_count, 20);
  EXPECT_EQ(Text("select string_agg(distinct keep_class::text, ',') from stepwell.metrics"), "0");
  ExpectNothingVanished();
}

TEST_F(CapsSweep, SamplesGoAfterTheirDayAndRollupsLater) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 4);
  SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = 3 * kDay});
  ASSERT_TRUE(folds_->AttachLeaves(kNowUs).ok());
  FillAndMerge(writer, 4, 600);
  EXPECT_EQ(SweepAll(kADayOldUs - 1).removed.removals.size(), 0u);
  const std::int64_t raw_bytes = Number("select sum(byte_count)::bigint from stepwell.usage");
  const std::int64_t rollup_bytes =
      Number("select sum(rollup_byte_count)::bigint from stepwell.usage");
  const SweepResult swept = SweepAll(kADayOldUs);
  EXPECT_EQ(swept.leaves_emptied, 1);
  EXPECT_EQ(swept.leaves_left, 0);
  ASSERT_EQ(swept.removed.removals.size(), 2u);
  const CapRemoval& gpu = swept.removed.removals[0];
  EXPECT_EQ(gpu.trial_id, writer.trial_id);
  EXPECT_EQ(gpu.metric_group, "gpu");
  EXPECT_EQ(gpu.field, "raw_age_seconds");
  EXPECT_EQ(gpu.sample_count, 1200);
  EXPECT_EQ(gpu.first_time_us, kNowUs);
  EXPECT_EQ(gpu.last_time_us, kNowUs + 599'000'000);
  EXPECT_EQ(swept.removed.raw_bytes, raw_bytes);
  EXPECT_EQ(swept.removed.rollup_bytes, 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  EXPECT_EQ(Number("select pg_relation_size('stepwell.metrics_k1_20241004')"), 0);
  EXPECT_EQ(Number("select sum(removed_sample_count)::bigint from stepwell.usage"), 2400);
  EXPECT_GT(Number("select count(*) from stepwell.rollups"), 0);
  ExpectNothingVanished();
  EXPECT_EQ(SweepAll(kADayOldUs).removed.removals.size(), 0u) << "once";

  const SweepResult rollups = SweepAll(kADayOldUs + 2 * kDayUs);
  EXPECT_EQ(rollups.removed.rollup_bytes, rollup_bytes);
  EXPECT_EQ(rollups.removed.sample_count, 0);
  EXPECT_EQ(Number("select count(*) from stepwell.rollups"), 0);
  ExpectNothingVanished();
  // All of it is empty and old: leaves, lines and the note of the sweep go.
  SweepAll(kADayOldUs + 3 * kDayUs);
  EXPECT_EQ(Number("select count(*) from pg_class where relname like '%\\_k1\\_20241004'"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.usage"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.swept_leaves"), 0);
  ExpectNothingVanished();
}

TEST_F(CapsSweep, RollupsGoLongAfterTheLeavesOfTheirSamplesWereDropped) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = 30 * kDay});
  FillAndMerge(writer, 2, 600);
  SweepAll(kADayOldUs);
  SweepAll(kADayOldUs + 5 * kDayUs);
  EXPECT_EQ(Number("select count(*) from pg_class where relname = 'metrics_k1_20241004'"), 0);
  EXPECT_GT(Number("select count(*) from stepwell.rollups"), 0);
  EXPECT_GT(SweepAll(kADayOldUs + 30 * kDayUs).removed.rollup_bytes, 0);
  EXPECT_EQ(Number("select count(*) from stepwell.rollups"), 0);
  ExpectNothingVanished();
}

TEST_F(CapsSweep, ASnapshotOfBeforeStaysExactAndTheLeafWaitsForIt) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay});
  FillAndMerge(writer, 2, 100);
  const auto reader = Connect(url_);
  // As an RPC does: the ledger first, rows much later.
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read, read only").ok());
  const char* lines = "select sum(sample_count)::bigint from stepwell.usage where row_count > 0";
  EXPECT_EQ(reader->Exec(SqlOf(lines))->Int64(0, 0), 200);
  const SweepResult swept = SweepAll(kADayOldUs);
  EXPECT_EQ(swept.leaves_left, 1);
  EXPECT_EQ(swept.leaves_emptied, 0);
  EXPECT_EQ(swept.removed.sample_count, 200) << "the ledger has given them up";
  ExpectNothingVanished();
  // Who comes now has the gap, and no samples.
  const std::string samples =
      absl::StrCat("select count(*) from stepwell.samples(", Value(writer.trial_id), ")");
  EXPECT_EQ(Number(samples), 0);
  EXPECT_EQ(reader->Exec(SqlOf(samples))->Int64(0, 0), 200);
  EXPECT_EQ(reader->Exec("select sum(sample_count)::bigint from stepwell.metrics")->Int64(0, 0),
            200);
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
}

// As where a database is shared: the master may not look into the sessions of others.
TEST_F(CapsSweep, IdleSessionsOfOthersKeepNoLeaf) {
  Run("drop role if exists caps_sweep_master");
  Run("create role caps_sweep_master");
  const auto master = Connect(url_), other = Connect(url_);
  ASSERT_TRUE(master->ExecScript("set role caps_sweep_master").ok());
  const std::string xid = Text("select pg_current_xact_id()::text");
  const auto older = [&] {
    const auto count = master->Exec(sql::kCountOlderSnapshots, {xid});
    EXPECT_TRUE(count.ok()) << count.status();
    return count.ok() ? count->Int64(0, 0) : -1;
  };
  ASSERT_TRUE(other->ExecScript("select 1").ok());
  EXPECT_EQ(older(), 0) << "all are idle";
  ASSERT_TRUE(other->ExecScript("begin; select 1").ok());
  EXPECT_EQ(older(), 1) << "nobody says what it has seen";
  ASSERT_TRUE(other->ExecScript("commit").ok());
  EXPECT_EQ(older(), 0);
}

TEST_F(CapsSweep, ALeafThatSomebodyHoldsIsLeftAndHoldsUpNobody) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay});
  FillAndMerge(writer, 2, 100);
  const auto holder = Connect(url_);
  // READ COMMITTED: no snapshot is left between statements, but the lock is.
  ASSERT_TRUE(
      holder->ExecScript("begin; lock table stepwell.metrics_k1_20241004 in access share mode")
          .ok());
  const absl::Time begin = absl::Now();
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2);
  ASSERT_TRUE(holder->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
}

TEST_F(CapsSweep, RowsThatAreMergedLateIntoALeafAreGivenUpOnceMore) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay});
  FillAndMerge(writer, 2, 100);
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read; select 1").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  FillAndMerge(writer, 2, 50, kNowUs + kAnHourUs);
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1) << "its ledger says again that rows are there";
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  ExpectNothingVanished();
  // And into one that is empty already.
  FillAndMerge(writer, 2, 25, kNowUs + 2 * kAnHourUs);
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 50);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.gaps where cause = 11"), 350);
  ExpectNothingVanished();
  // And into one that is dropped.
  SweepAll(kADayOldUs + 10 * kDayUs);
  EXPECT_EQ(Number("select count(*) from pg_class where relname = 'metrics_k1_20241004'"), 0);
  const std::vector<TickTable> tables = {Table(2, 5)};
  Fill(writer, tables);
  const MergeLimits limits{.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs};
  MergeAll(limits);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 10);
  ExpectNothingVanished();
}

// Rows came into a leaf that was given up, and went with their trial: who saw them before sees them still.
TEST_F(CapsSweep, ALeafWaitsForASnapshotOfBeforeADeletion) {
  const OpenedWriter writer = OpenWriter("t"), late = OpenWriter("late");
  for (const OpenedWriter& each : {writer, late}) AddSeries(each.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay});
  FillAndMerge(writer, 2, 100);
  const auto first = Connect(url_);
  ASSERT_TRUE(first->ExecScript("begin isolation level repeatable read; select 1").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  FillAndMerge(late, 2, 50, kNowUs + kAnHourUs);
  ASSERT_TRUE(first->ExecScript("commit").ok());
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read; select 1").ok());
  const auto deleted = caps_.Delete(kEpoch, {.external_id = "late"}, kAllProjects);
  ASSERT_TRUE(deleted.ok() && deleted->done) << deleted.status();
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  const std::string samples =
      absl::StrCat("select count(*) from stepwell.samples(", Value(late.trial_id), ")");
  EXPECT_EQ(reader->Exec(SqlOf(samples))->Int64(0, 0), 100);
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  std::erase_if(sent_, [&](const auto& each) { return each.first.first == Value(late.trial_id); });
  ExpectNothingVanished();
}

TEST_F(CapsSweep, ALeafWaitsForAMergeThatIsHalfWay) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 8);
  SetCaps({}, {.raw_age_seconds = kDay});
  const std::vector<TickTable> tables = {Table(8, 600)};
  Fill(writer, tables);
  const MergeLimits limits{
      .fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs, .rows_max = 3};
  // Two of four slices; the others need the ticks that the first has written.
  for (int slice = 0; slice < 2; ++slice) {
    ASSERT_TRUE(folds_->Merge(kEpoch, limits).ok());
    const SweepResult swept = SweepWithoutMerges(kADayOldUs);
    EXPECT_EQ(swept.leaves_left, 1);
    EXPECT_EQ(swept.leaves_emptied, 0);
    EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 1);
  }
  MergeAll(limits);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1) << "its ledger says again that rows are there";
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
}

TEST_F(CapsSweep, AMergeComesAgainAtOnceOnlyOnceWhereATableIsGone) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  const std::vector<TickTable> tables = {Table(2, 100)};
  Fill(writer, tables);
  const MergeLimits limits{.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs};
  Run("alter table stepwell.usage_lines rename to usage_away");
  const auto first = folds_->Merge(kEpoch, limits), second = folds_->Merge(kEpoch, limits);
  Run("alter table stepwell.usage_away rename to usage_lines");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->more);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  MergeAll(limits);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2);
  ExpectNothingVanished();
}

TEST_F(CapsSweep, ALeafThatCannotBeSweptHoldsUpNoOther) {
  const OpenedWriter bad = OpenWriter("bad"), good = OpenWriter("good");
  for (const OpenedWriter& each : {bad, good}) AddSeries(each.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay});
  FillAndMerge(bad, 2, 100);
  FillAndMerge(good, 2, 100, kNowUs + kDayUs);
  RefuseGapsOf(bad.trial_id);
  const auto swept = caps_.Sweep(
      kEpoch, {.now_us = kADayOldUs + 2 * kDayUs, .duration_max = absl::Seconds(20)}, kAllProjects);
  AllowGaps();
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_NE(swept->failed.message().find("give up samples"), absl::string_view::npos)
      << swept->failed;
  EXPECT_EQ(swept->leaves_emptied, 1) << "that of the later day";
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2);
  EXPECT_EQ(SweepAll(kADayOldUs + 2 * kDayUs).leaves_emptied, 1);
  ExpectNothingVanished();
}

TEST_F(CapsSweep, EmptyLeavesOfDaysGoneByAreDropped) {
  ASSERT_TRUE(folds_->AttachLeaves(kNowUs).ok());
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  FillAndMerge(writer, 1, 10);
  const std::string leaves =
      "select count(*) from pg_inherits where inhparent in ("
      "'stepwell.metrics'::regclass, 'stepwell.ticks'::regclass, "
      "'stepwell.rollups'::regclass, 'stepwell.rollup_ticks'::regclass)";
  EXPECT_EQ(Number(leaves), 16);
  SweepAll(kNowUs);
  EXPECT_EQ(Number(leaves), 16);
  SweepAll(kNowUs + 30 * kDayUs);
  EXPECT_EQ(Number(leaves), 4) << "those of the day that has samples";
  ExpectNothingVanished();
}

TEST_F(CapsSweep, OnlyTheOwnerSweeps) {
  Run("insert into stepwell.masters values (0, 'other', 7, 'a', now(), 20)");
  EXPECT_EQ(caps_.Sweep(6, {}, kAllProjects).status().code(), absl::StatusCode::kOk)
      << "nothing to do";
  const OpenedWriter writer = OpenWriter("t", 7);
  AddSeries(writer.trial_id, 1);
  EXPECT_EQ(caps_.Set(6, {}, kAllProjects, {.raw_age_seconds = kDay}, {}).status().code(),
            absl::StatusCode::kAborted);
  ASSERT_TRUE(caps_.Set(7, {}, kAllProjects, {.raw_age_seconds = kDay}, {}).ok());
  CommitGroupRequest group = Group({Advance(writer, 1)});
  group.owner_epoch = 7;
  ASSERT_TRUE(ingest_->Commit(group).ok());
  const std::vector<TickTable> tables = {Table(1, 10)};
  ASSERT_TRUE(folds_->Fold(7, {FoldOf(writer, 0, 1, tables)}).ok());
  ASSERT_TRUE(
      folds_->Merge(7, {.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs}).ok());
  EXPECT_EQ(caps_.Sweep(6, {.now_us = kADayOldUs}, kAllProjects).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(caps_.Archive(6, {.external_id = "t"}, kAllProjects, true).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(caps_.Delete(6, {.external_id = "t"}, kAllProjects).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.usage"), 10);
  const auto swept = caps_.Sweep(7, {.now_us = kADayOldUs}, kAllProjects);
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_EQ(swept->removed.sample_count, 10);
}

}  // namespace
}  // namespace stepwell
