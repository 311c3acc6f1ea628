// Leaves that are over both of their ages: their lines of the ledger are deleted as they are given up, and a trial that
// lost all of its groups there has one gap. What readers, late rows, deletions and sweeps that were cut find then.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/contract/caps_store_test.h"
#include "tests/support/child_process.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Connect;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kAnHourUs = 3'600'000'000;
// The first moment at which what was received at kNowUs is a day old.
constexpr std::int64_t kADayOldUs = 20'002 * kDayUs;
// Of the first transaction of a leaf (kLinesMax).
constexpr int kLinesAtOnce = 500;

class CapsGivenUp : public CapsStoreTest {
 protected:
  CapsGivenUp() { SetCaps({}, Both(kDay)); }

  static Caps Both(std::int64_t age_seconds) {
    return {.raw_age_seconds = age_seconds, .rollup_age_seconds = age_seconds};
  }
  std::int64_t Lines() {
    return Number("select count(*) from stepwell.usage where keep_class > 0");
  }
  // "GROUP:SAMPLES ..." of a trial.
  std::string Gaps(const OpenedWriter& writer) {
    return Text(
        absl::StrCat("select coalesce(string_agg(metric_group || ':' || sample_count, ' ' order by "
                     "metric_group), '') from stepwell.gaps where cause = 11 and trial_id = ",
                     Value(writer.trial_id)));
  }
  static bool Is(const OpenedWriter& a, const OpenedWriter& b) { return a.trial_id == b.trial_id; }
  // Three series: of "gpu", "timing" and "memory".
  OpenedWriter OpenOfThreeGroups(const std::string& name) {
    const OpenedWriter writer = OpenWriter(name);
    AddSeries(writer.trial_id, 3);
    Run(absl::StrCat("update stepwell.series set metric_group = 'memory' where series_no = 3 and ",
                     "trial_id = ", Value(writer.trial_id)));
    return writer;
  }
  // What series 3 has sent is of "memory".
  void SentOfMemory(const OpenedWriter& writer, std::int64_t sample_count) {
    sent_[{Value(writer.trial_id), "gpu"}] -= sample_count;
    sent_[{Value(writer.trial_id), "memory"}] += sample_count;
  }
  void ClearAges(const CapsTarget& target) {
    const auto report =
        caps_.Set(kEpoch, target, kAllProjects, {}, {"raw_age_seconds", "rollup_age_seconds"});
    ASSERT_TRUE(report.ok()) << report.status();
  }
  // Sweeps in calls of that time until a trial that was deleted is buried; how many there were.
  int BuryInCallsOf(absl::Duration duration_max, std::int64_t now_us) {
    int calls = 0;
    while (Number("select count(*) from stepwell.trials where deleted_time is not null and "
                  "attempt_count > 0") > 0) {
      EXPECT_LT(calls++, 200) << "a burial never ends";
      const auto swept =
          caps_.Sweep(kEpoch, {.now_us = now_us, .duration_max = duration_max}, kAllProjects);
      EXPECT_TRUE(swept.ok() && swept->failed.ok()) << swept.status();
      if (HasFailure()) break;
      EXPECT_TRUE(swept->came_further());
    }
    return calls;
  }
  // A transaction with a snapshot of now.
  std::unique_ptr<PgConnection> OpenReader() {
    auto reader = Connect(url_);
    EXPECT_TRUE(reader->ExecScript("begin isolation level repeatable read; select 1").ok());
    return reader;
  }
};

TEST_F(CapsGivenUp, NoLineIsLeftAndASnapshotOfBeforeStaysExact) {
  const OpenedWriter a = OpenWriter("a"), b = OpenWriter("b");
  for (const OpenedWriter& each : {a, b}) {
    AddSeries(each.trial_id, 4);
    FillAndMerge(each, 4, 600);
  }
  MoveRollups(kADayOldUs);
  const char* ledger =
      "select sum(sample_count)::bigint, sum(byte_count)::bigint, sum(rollup_byte_count)::bigint, "
      "(select count(*) from stepwell.rollups) from stepwell.usage where row_count > 0";
  const auto before = sql_->Exec(SqlOf(ledger));
  const auto reader = OpenReader();
  const SweepResult swept = SweepAll(kADayOldUs);
  EXPECT_EQ(swept.leaves_left, 1);
  EXPECT_EQ(swept.leaves_emptied, 0);
  EXPECT_EQ(swept.removed.sample_count, before->Int64(0, 0));
  EXPECT_EQ(swept.removed.raw_bytes, before->Int64(0, 1));
  EXPECT_EQ(swept.removed.rollup_bytes, before->Int64(0, 2));
  ASSERT_EQ(swept.removed.removals.size(), 8u) << "of each group, and of each of its ages";
  EXPECT_EQ(swept.removed.removals[0].metric_group, "gpu");
  EXPECT_EQ(swept.removed.removals[0].field, "raw_age_seconds");
  EXPECT_EQ(swept.removed.removals[0].sample_count, 1200);
  EXPECT_EQ(swept.removed.removals[1].field, "rollup_age_seconds");
  EXPECT_GT(swept.removed.removals[1].rollup_bytes, 0);
  EXPECT_EQ(Lines(), 0);
  EXPECT_EQ(Gaps(a), ":2400");
  EXPECT_EQ(Text("select string_agg(distinct first_time_us || ' ' || last_time_us, ', ') from "
                 "stepwell.gaps"),
            absl::StrCat(kNowUs, " ", kNowUs + 599'000'000));
  ExpectNothingVanished();
  const std::string samples =
      absl::StrCat("select count(*) from stepwell.samples(", Value(a.trial_id), ")");
  EXPECT_EQ(Number(samples), 0) << "who comes now has the gap";
  EXPECT_EQ(reader->Exec(SqlOf(samples))->Int64(0, 0), 2400);
  const auto seen = reader->Exec(SqlOf(ledger));
  for (int column = 0; column < 4; ++column) {
    EXPECT_EQ(seen->Int64(0, column), before->Int64(0, column)) << "column " << column;
  }
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks"}) {
    EXPECT_EQ(Number(absl::StrCat("select count(*) from stepwell.", table)), 0) << table;
  }
  EXPECT_EQ(SweepAll(kADayOldUs).removed.removals.size(), 0u) << "once";
  ExpectNothingVanished();
}

// The first transaction is over, the second is not: then all of them are, and nothing is emptied yet.
TEST_F(CapsGivenUp, ASweepThatEndedInBetweenGoesOnBySweptLeavesAlone) {
  // Line 500 is the first of two of the last trial but one, so that it goes with the next transaction.
  constexpr int kTrials = 2 + kLinesAtOnce / 2;
  std::vector<OpenedWriter> writers;
  for (int trial = 0; trial < kTrials; ++trial) {
    writers.push_back(OpenWriter(absl::StrCat("t", trial)));
    const int series_count = trial == 0 ? 1 : 2;
    AddSeries(writers.back().trial_id, series_count);
    const std::vector<TickTable> tables = {Table(series_count, 10)};
    Fill(writers.back(), tables);
  }
  MergeNow();
  MoveRollups(kADayOldUs);
  ASSERT_EQ(Lines(), 2 * kTrials - 1);
  RefuseGapsOf(writers.back().trial_id);
  const auto cut =
      caps_.Sweep(kEpoch, {.now_us = kADayOldUs, .duration_max = absl::Seconds(20)}, kAllProjects);
  AllowGaps();
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_FALSE(cut->failed.ok());
  EXPECT_EQ(cut->removed.sample_count, (2 * (kTrials - 2) - 1) * 10);
  EXPECT_EQ(Lines(), 4) << "of the last two trials";
  ExpectSentIsHeldOrGap();

  const auto reader = OpenReader();
  PgCapsStore next({.url = url_});
  const SweepRequest request = {.now_us = kADayOldUs, .duration_max = absl::Seconds(20)};
  const auto rest = next.Sweep(kEpoch, request, kAllProjects);
  ASSERT_TRUE(rest.ok() && rest->failed.ok()) << rest.status() << rest->failed;
  EXPECT_EQ(rest->removed.sample_count, 4 * 10);
  EXPECT_EQ(rest->leaves_left, 1);
  EXPECT_EQ(Lines(), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.gaps where metric_group = ''"), kTrials - 1);
  EXPECT_EQ(Number("select count(*) from stepwell.gaps"), kTrials);
  EXPECT_EQ(Gaps(writers.front()), "gpu:10") << "all of its groups are one";
  ExpectNothingVanished();
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  const auto emptied = PgCapsStore({.url = url_}).Sweep(kEpoch, request, kAllProjects);
  ASSERT_TRUE(emptied.ok()) << emptied.status();
  EXPECT_EQ(emptied->leaves_emptied, 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
}

TEST_F(CapsGivenUp, AGapWithoutAGroupIsOfAllThatTheTrialHas) {
  const OpenedWriter all = OpenOfThreeGroups("all"), kept = OpenOfThreeGroups("kept"),
                     later = OpenOfThreeGroups("later"), changed = OpenOfThreeGroups("changed"),
                     ahead = OpenOfThreeGroups("ahead"), early = OpenOfThreeGroups("early");
  SetCaps(Of(kept, "memory"), Both(10 * kDay));
  for (const OpenedWriter& each : {all, kept, changed}) {
    FillAndMerge(each, 3, 10);
    SentOfMemory(each, 10);
  }
  // One of its groups begins a day later.
  FillAndMerge(later, 2, 10);
  FillAndMerge(later, 3, 10, kNowUs + kDayUs);
  SentOfMemory(later, 10);
  // All of its groups are over their age, and have newer caps since: what came behind that stays.
  SetCaps(Of(changed), Both(20 * kDay));
  FillAndMerge(changed, 3, 10, kNowUs + kAnHourUs);
  SentOfMemory(changed, 10);
  // Clocks that were absurd: a gap of all would reach over what the others have of other days.
  for (const OpenedWriter& each : {ahead, early}) {
    const std::int64_t off_us = each.trial_id == ahead.trial_id ? 9 * kDayUs : -9 * kDayUs;
    const std::vector<TickTable> tables = {NoisyTable(1, 10, kNowUs + off_us)};
    Fill(each, tables);
    FillAndMerge(each, 3, 10);
    const std::vector<TickTable> others = {NoisyTable(3, 10, kNowUs + off_us / 9)};
    Fill(each, others, kNowUs + kDayUs);
    MergeNow(kNowUs + kDayUs);
    SentOfMemory(each, 20);
  }
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 30 + 20 + 20 + 30 + 40 + 40);
  EXPECT_EQ(Gaps(all), ":30");
  EXPECT_EQ(Gaps(kept), "gpu:10 timing:10") << "memory lost nothing";
  EXPECT_EQ(Gaps(later), "gpu:10 timing:10") << "memory had nothing yet";
  EXPECT_EQ(Gaps(changed), "gpu:10 memory:10 timing:10") << "the rest of the day is held";
  EXPECT_EQ(Gaps(ahead), "gpu:20 memory:10 timing:10");
  EXPECT_EQ(Gaps(early), "gpu:20 memory:10 timing:10");
  ExpectNothingVanished();
  // It goes on in the row that it has, and beside it where that says too much.
  FillAndMerge(all, 3, 10, kNowUs + kDayUs);
  SentOfMemory(all, 10);
  FillAndMerge(all, 1, 10, kNowUs + 2 * kDayUs);
  EXPECT_EQ(SweepAll(kADayOldUs + kDayUs).removed.sample_count, 30 + 30 + 30 + 30);
  EXPECT_EQ(Gaps(all), ":60");
  EXPECT_EQ(Gaps(later), ":30 gpu:10 timing:10");
  SweepAll(kADayOldUs + 2 * kDayUs);
  EXPECT_EQ(Gaps(all), ":60 gpu:10");
  ExpectNothingVanished();
}

// What lies between two stretches of it is held for longer, by one of its groups.
TEST_F(CapsGivenUp, AGapWithoutAGroupDoesNotGrowOverWhatAGroupHolds) {
  const OpenedWriter ahead = OpenOfThreeGroups("ahead"), back = OpenOfThreeGroups("back");
  SetCaps(Of(back), Both(20 * kDay));
  FillAndMerge(ahead, 2, 10);
  FillAndMerge(back, 3, 10);
  SentOfMemory(back, 10);
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 20);
  EXPECT_EQ(Gaps(ahead), ":20");

  SetCaps(Of(ahead, "memory"), Both(10 * kDay));
  SetCaps(Of(back, "memory"), Both(30 * kDay));
  for (const OpenedWriter& each : {ahead, back}) {
    std::vector<TickTable> tables = {NoisyTable(3, 10, kNowUs + 4 * kDayUs)};
    if (Is(each, back))
      tables[0].columns.erase(tables[0].columns.begin(), tables[0].columns.begin() + 2);
    Fill(each, tables, kNowUs + 4 * kDayUs);
    MergeNow(kNowUs + 4 * kDayUs);
    SentOfMemory(each, 10);
  }
  EXPECT_EQ(SweepAll(kADayOldUs + 4 * kDayUs).removed.sample_count, 20);
  EXPECT_EQ(Gaps(ahead), ":20 gpu:10 timing:10") << "memory is kept";

  for (const OpenedWriter& each : {ahead, back}) ClearAges(Of(each, "memory"));
  ClearAges(Of(back));
  for (const OpenedWriter& each : {ahead, back}) {
    FillAndMerge(each, 3, 10, kNowUs + 7 * kDayUs);
    SentOfMemory(each, 10);
  }
  EXPECT_EQ(SweepAll(kADayOldUs + 7 * kDayUs).removed.sample_count, 30 + 30);
  EXPECT_EQ(Gaps(ahead), ":20 gpu:20 memory:10 timing:20") << "memory of day 4 is held";
  EXPECT_EQ(Gaps(back), ":30") << "nothing lies between what went and it";
  // Of back the first day goes last, with its days of memory between it and what went before.
  EXPECT_EQ(SweepAll(kADayOldUs + 20 * kDayUs).removed.sample_count, 10 + 30);
  EXPECT_EQ(Gaps(ahead), ":20 gpu:20 memory:20 timing:20");
  EXPECT_EQ(Gaps(back), ":30 gpu:10 memory:10 timing:10");
  ExpectNothingVanished();
  // When those are gone, too, it grows.
  EXPECT_EQ(SweepAll(kADayOldUs + 40 * kDayUs).removed.sample_count, 10);
  for (const OpenedWriter& each : {ahead, back}) {
    FillAndMerge(each, 3, 10, kNowUs + 40 * kDayUs);
    SentOfMemory(each, 10);
  }
  EXPECT_EQ(SweepAll(kADayOldUs + 41 * kDayUs).removed.sample_count, 60);
  EXPECT_EQ(Gaps(ahead), ":50 gpu:20 memory:20 timing:20");
  EXPECT_EQ(Gaps(back), ":60 gpu:10 memory:20 timing:10");
  ExpectNothingVanished();
}

TEST_F(CapsGivenUp, RowsThatComeLateBringLinesOfTheirOwn) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  FillAndMerge(writer, 2, 100);
  MoveRollups(kADayOldUs);
  auto reader = OpenReader();
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  FillAndMerge(writer, 2, 50, kNowUs + kAnHourUs);
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.usage"), 100) << "the new ones";
  EXPECT_EQ(Number("select min(least(row_count, sample_count, byte_count, rollup_byte_count)) from "
                   "stepwell.usage where keep_class > 0"),
            1)
      << "one row each, and nothing was taken off a line that is gone";
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 100);
  SweepAll(kADayOldUs);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
  // And into a leaf that is empty already, and into one that is dropped.
  FillAndMerge(writer, 2, 25, kNowUs + 2 * kAnHourUs);
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 50);
  SweepAll(kADayOldUs + 10 * kDayUs);
  EXPECT_EQ(Number("select count(*) from pg_class where relname like '%\\_k1\\_20241004'"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.swept_leaves"), 0);
  const std::vector<TickTable> tables = {Table(2, 5)};
  Fill(writer, tables);
  MergeNow();
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 10);
  EXPECT_EQ(Gaps(writer), ":360");
  EXPECT_EQ(Lines(), 0);
  ExpectNothingVanished();
}

// Samples went long ago, their rollups are over their age now: one of the two was told already.
TEST_F(CapsGivenUp, RollupsThatOutlivedTheirSamplesTakeTheirLinesAlong) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = 3 * kDay});
  FillAndMerge(writer, 2, 600);
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 1200);
  EXPECT_EQ(Lines(), 2);
  const SweepResult swept = SweepAll(kADayOldUs + 2 * kDayUs);
  EXPECT_EQ(swept.removed.sample_count, 0);
  EXPECT_GT(swept.removed.rollup_bytes, 0);
  EXPECT_EQ(Lines(), 0);
  EXPECT_EQ(Gaps(writer), ":1200");
  EXPECT_EQ(Number("select count(*) from stepwell.rollups"), 0);
  ExpectNothingVanished();
}

TEST_F(CapsGivenUp, OfADeletedTrialNothingStaysInALeafThatHasNoLines) {
  const OpenedWriter writer = OpenWriter("t"), other = OpenWriter("other");
  for (const OpenedWriter& each : {writer, other}) {
    AddSeries(each.trial_id, 2);
    FillAndMerge(each, 2, 600);
  }
  MoveRollups(kADayOldUs);
  const auto reader = OpenReader();
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  const auto later = OpenReader();
  const auto deleted = caps_.Delete(kEpoch, {.trial_id = Value(writer.trial_id)}, kAllProjects);
  ASSERT_TRUE(deleted.ok() && deleted->done) << deleted.status();
  EXPECT_EQ(Text(testing::BuriedMismatchSql()), "");
  EXPECT_EQ(Number("select count(distinct trial_id) from stepwell.metrics"), 1) << "the other's";
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1) << "who came later has seen no line";
  std::erase_if(sent_,
                [&](const auto& each) { return each.first.first == Value(writer.trial_id); });
  ExpectNothingVanished();
}

// Whose snapshot stays open keeps them waiting: each call has time for some of them only.
TEST_F(CapsGivenUp, ABurialComesToItsEndBesideManyLeavesThatWaitToBeEmptied) {
  constexpr int kLeaves = 20;
  const OpenedWriter doomed = OpenWriter("doomed"), next = OpenWriter("next"),
                     other = OpenWriter("other");
  for (const OpenedWriter& each : {doomed, next, other}) {
    AddSeries(each.trial_id, 2);
    FillAndMerge(each, 2, 5);
  }
  for (int day = 1; day < kLeaves; ++day) FillAndMerge(other, 2, 5, kNowUs + day * kDayUs);
  const std::int64_t now_us = kADayOldUs + kLeaves * kDayUs;
  MoveRollups(now_us);
  const auto reader = OpenReader();
  EXPECT_EQ(SweepAll(now_us).leaves_left, kLeaves);
  const char* number_of_a_transaction = "select pg_current_xact_id()::text::bigint";
  for (const OpenedWriter& each : {doomed, next}) {
    Run(absl::StrCat("update stepwell.trials set deleted_time = now() where trial_id = ",
                     Value(each.trial_id)));
    const std::int64_t before = Number(number_of_a_transaction);
    const absl::Duration duration_max = absl::Milliseconds(Is(each, doomed) ? 20 : 1);
    const int calls = BuryInCallsOf(duration_max, now_us);
    ASSERT_FALSE(HasFailure());
    EXPECT_TRUE(Is(each, doomed) || calls > 1) << "a millisecond was enough for all of them";
    EXPECT_LT(Number(number_of_a_transaction) - before, 2 * kLeaves) << "where nothing is";
    EXPECT_EQ(Text(testing::BuriedMismatchSql()), "");
  }
  // Leaves are left, and nothing can be done: whoever calls again at once while there is, as a master does, stops.
  const auto idle = caps_.Sweep(kEpoch, {.now_us = now_us}, kAllProjects);
  ASSERT_TRUE(idle.ok()) << idle.status();
  EXPECT_EQ(idle->leaves_left, kLeaves);
  EXPECT_FALSE(idle->came_further());
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(now_us).leaves_emptied, kLeaves);
}

// Lines are deleted in no order, so that a merge that holds one may wait for another: the sweep goes. A merge has written
// into the leaf before.
TEST_F(CapsGivenUp, ASweepGivesWayToWhoHoldsALine) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  FillAndMerge(writer, 2, 100);
  MoveRollups(kADayOldUs);
  const auto holder = Connect(url_);
  ASSERT_TRUE(holder
                  ->ExecScript("begin; lock table stepwell.metrics_k1_20241004 in row exclusive "
                               "mode; update stepwell.usage_lines set row_count = row_count where "
                               "metric_group = 'timing' and keep_class > 0")
                  .ok());
  const absl::Time begin = absl::Now();
  const auto swept = caps_.Sweep(kEpoch, {.now_us = kADayOldUs}, kAllProjects);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  ASSERT_TRUE(swept.ok() && swept->failed.ok()) << swept.status() << swept->failed;
  EXPECT_GT(swept->leaves_left, 0);
  EXPECT_EQ(swept->removed.sample_count, 0);
  EXPECT_EQ(Lines(), 2);
  EXPECT_EQ(Gaps(writer), "");
  ASSERT_TRUE(holder->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  EXPECT_EQ(Gaps(writer), ":200");
  ExpectNothingVanished();
}

// The sweep has looked at the line, and waits for the merge: it takes what that has made of it.
TEST_F(CapsGivenUp, WhatAMergeAddsWhileASweepWaitsForItsLineIsTold) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  FillAndMerge(writer, 2, 100);
  MoveRollups(kADayOldUs);
  const auto holder = Connect(url_);
  SweepResult swept;
  // Where the machine stands still for 20 ms the sweep gives way: then once more.
  for (int i = 0; i < 100 && swept.removed.sample_count == 0; ++i) {
    ASSERT_TRUE(
        holder
            ->ExecScript("begin; lock table stepwell.metrics_k1_20241004 in row exclusive "
                         "mode; update stepwell.usage_lines set sample_count = "
                         "sample_count + 7 where metric_group = 'timing' and keep_class > 0")
            .ok());
    sent_[{Value(writer.trial_id), "timing"}] += 7;
    std::thread sweeping([&] { swept = SweepWithoutMerges(kADayOldUs); });
    testing::Eventually(
        [&] {
          return Number(
                     "select count(*) from pg_stat_activity where datname = current_database() "
                     "and application_name = 'stepwell-caps' and wait_event_type = 'Lock'") > 0;
        },
        absl::Milliseconds(500));
    ASSERT_TRUE(holder->ExecScript("commit").ok());
    sweeping.join();
  }
  EXPECT_GT(swept.removed.sample_count, 200);
  // Where it gave way with the lines, and came through with their samples alone, lines go with the next one.
  SweepAll(kADayOldUs);
  EXPECT_EQ(Lines(), 0);
  ExpectSentIsHeldOrGap();
}

}  // namespace
}  // namespace stepwell
