// Leaves whose samples are over their age while their rollups stay: one mark gives up all of their lines of the ledger,
// which are not touched. What readers, late rows, merges under way, sweeps that were cut and later sweeps find then.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/contract/caps_store_test.h"
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
constexpr char kLeafSuffix[] = "k1_20241004";

class CapsMarked : public CapsStoreTest {
 protected:
  CapsMarked() { SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = 30 * kDay}); }

  OpenedWriter OpenOfTwoGroups(const std::string& name) {
    const OpenedWriter writer = OpenWriter(name);
    AddSeries(writer.trial_id, 2);
    return writer;
  }
  // "SAMPLES+REMOVED ..." of the lines of a trial in leaves, as everybody reads them.
  std::string Lines(const OpenedWriter& writer) {
    return Text(
        absl::StrCat("select coalesce(string_agg(sample_count || '+' || removed_sample_count, ' ' "
                     "order by received_day, metric_group), '') from stepwell.usage where "
                     "keep_class > 0 and trial_id = ",
                     Value(writer.trial_id)));
  }
  // The lines as they lie there, and which versions of them.
  std::string LinesAsStored() {
    return Text(
        "select string_agg(u::text || u.ctid || u.xmin, ' ' order by trial_id, metric_group) "
        "from stepwell.usage_lines u where keep_class > 0");
  }
  std::int64_t Mark() {
    return Number("select coalesce(max(samples_through), 0) from stepwell.swept_leaves");
  }
  std::string Gaps(const OpenedWriter& writer) {
    return Text(
        absl::StrCat("select coalesce(string_agg(metric_group || ':' || sample_count, ' ' order by "
                     "metric_group), '') from stepwell.gaps where cause = 11 and trial_id = ",
                     Value(writer.trial_id)));
  }
};

TEST_F(CapsMarked, LinesStayAsTheyAreAndSayThatTheirSamplesWent) {
  const OpenedWriter a = OpenOfTwoGroups("a"), b = OpenOfTwoGroups("b");
  for (const OpenedWriter& each : {a, b}) FillAndMerge(each, 2, 600);
  MoveRollups(kADayOldUs);
  const std::string stored = LinesAsStored();
  const std::int64_t raw_bytes = Number("select sum(byte_count)::bigint from stepwell.usage");
  const SweepResult swept = SweepAll(kADayOldUs);
  EXPECT_EQ(swept.removed.sample_count, 2400);
  EXPECT_EQ(swept.removed.raw_bytes, raw_bytes);
  EXPECT_EQ(swept.leaves_emptied, 1);
  EXPECT_EQ(LinesAsStored(), stored);
  EXPECT_EQ(Mark(), Value(b.trial_id));
  for (const OpenedWriter& each : {a, b}) {
    EXPECT_EQ(Lines(each), "0+600 0+600");
    EXPECT_EQ(Gaps(each), ":1200");
  }
  EXPECT_EQ(Number("select sum(row_count + byte_count)::bigint from stepwell.usage"), 0);
  EXPECT_GT(Number("select sum(rollup_byte_count)::bigint from stepwell.usage"), 0);
  ExpectNothingVanished();
  // Nobody takes them for rows that vanished, and nothing goes twice.
  EXPECT_EQ(SweepAll(kADayOldUs).removed.removals.size(), 0u);
  EXPECT_EQ(Number("select count(*) from stepwell.gaps"), 2);
  EXPECT_EQ(LinesAsStored(), stored);
}

TEST_F(CapsMarked, ALineBeginsAnewWithWhatComesBehindTheMark) {
  const OpenedWriter early = OpenOfTwoGroups("early"), writer = OpenOfTwoGroups("t"),
                     later = OpenOfTwoGroups("later");
  FillAndMerge(writer, 2, 100);
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 200);
  ASSERT_EQ(Mark(), Value(writer.trial_id));
  // One that is known, one before the mark that had nothing there, and one behind it.
  FillAndMerge(writer, 2, 50, kNowUs + kAnHourUs);
  FillAndMerge(early, 2, 25, kNowUs + kAnHourUs);
  FillAndMerge(later, 2, 10, kNowUs + kAnHourUs);
  EXPECT_EQ(Lines(writer), "50+100 50+100");
  EXPECT_EQ(Lines(early), "25+0 25+0");
  EXPECT_EQ(Lines(later), "10+0 10+0");
  ExpectNothingVanished();
  EXPECT_EQ(
      Number(absl::StrCat("select count(*) from stepwell.samples(", Value(writer.trial_id), ")")),
      100);
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 2 * (50 + 25 + 10));
  EXPECT_EQ(Mark(), Value(later.trial_id));
  EXPECT_EQ(Lines(writer), "0+150 0+150");
  EXPECT_EQ(Lines(early), "0+25 0+25");
  EXPECT_EQ(Lines(later), "0+10 0+10");
  EXPECT_EQ(Gaps(writer), ":300");
  EXPECT_EQ(Gaps(early), ":50");
  EXPECT_EQ(Gaps(later), ":20");
  ExpectNothingVanished();
  SweepAll(kADayOldUs);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
}

// It has written rows and their lines, and nobody sees them yet: the mark would pass them untold.
TEST_F(CapsMarked, AMarkGivesWayToWhoWritesIntoItsLeaf) {
  const OpenedWriter writer = OpenOfTwoGroups("t");
  FillAndMerge(writer, 2, 100);
  const auto merge = Connect(url_);
  ASSERT_TRUE(merge
                  ->ExecScript(SqlOf(absl::StrCat(
                      "begin; lock table stepwell.metrics_", kLeafSuffix,
                      " in row exclusive mode; update stepwell.usage_lines set sample_count = "
                      "sample_count + 7 where metric_group = 'timing' and keep_class > 0")))
                  .ok());
  sent_[{Value(writer.trial_id), "timing"}] += 7;
  const absl::Time begin = absl::Now();
  const SweepResult waits = SweepAll(kADayOldUs);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  EXPECT_EQ(waits.leaves_left, 1);
  EXPECT_EQ(waits.removed.sample_count, 0);
  EXPECT_EQ(Mark(), 0);
  ASSERT_TRUE(merge->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 207);
  EXPECT_EQ(Lines(writer), "0+100 0+107");
  ExpectSentIsHeldOrGap();
}

// Who merges is not held up by readers of the leaf, nor they by the mark.
TEST_F(CapsMarked, AReaderOfTheLeafHoldsUpNoMark) {
  const OpenedWriter writer = OpenOfTwoGroups("t");
  FillAndMerge(writer, 2, 100);
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader
                  ->ExecScript(SqlOf(absl::StrCat("begin isolation level repeatable read; select 1 "
                                                  "from stepwell.metrics_",
                                                  kLeafSuffix)))
                  .ok());
  const SweepResult swept = SweepAll(kADayOldUs);
  EXPECT_EQ(swept.removed.sample_count, 200);
  EXPECT_EQ(swept.leaves_left, 1) << "it is emptied behind the reader";
  const std::string samples =
      absl::StrCat("select count(*) from stepwell.samples(", Value(writer.trial_id), ")");
  EXPECT_EQ(Number(samples), 0);
  EXPECT_EQ(reader->Exec(SqlOf(samples))->Int64(0, 0), 200);
  EXPECT_EQ(reader->Exec("select sum(sample_count)::bigint from stepwell.usage")->Int64(0, 0), 200);
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  ExpectNothingVanished();
}

TEST_F(CapsMarked, ATrialOfManyGroupsIsGivenUpLineByLine) {
  constexpr int kGroups = kLinesAtOnce + 2, kTicks = 2;
  const OpenedWriter first = OpenOfTwoGroups("first");
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, kGroups);
  Run(absl::StrCat("update stepwell.series set metric_group = 'g' || series_no where trial_id = ",
                   Value(writer.trial_id)));
  const OpenedWriter last = OpenOfTwoGroups("last");
  FillAndMerge(first, 2, 10);
  FillAndMerge(writer, kGroups, kTicks);
  FillAndMerge(last, 2, 10);
  for (const char* group : {"gpu", "timing"}) sent_.erase({Value(writer.trial_id), group});
  for (int i = 1; i <= kGroups; ++i) {
    sent_[{Value(writer.trial_id), absl::StrCat("g", i)}] = kTicks;
  }
  ExpectNothingVanished();
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 20 + kGroups * kTicks + 20);
  EXPECT_EQ(Number("select count(*) from stepwell.usage_lines where after_sweep"), kLinesAtOnce);
  EXPECT_EQ(Mark(), Value(last.trial_id));
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.usage"), 0);
  ExpectNothingVanished();
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 0);
  ExpectNothingVanished();
}

TEST_F(CapsMarked, AMarkThatWasStoppedHalfWayGoesOn) {
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
  RefuseGapsOf(writers.back().trial_id);
  const auto cut =
      caps_.Sweep(kEpoch, {.now_us = kADayOldUs, .duration_max = absl::Seconds(20)}, kAllProjects);
  AllowGaps();
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_FALSE(cut->failed.ok());
  EXPECT_EQ(cut->removed.sample_count, (2 * (kTrials - 2) - 1) * 10);
  EXPECT_EQ(Mark(), Value(writers[kTrials - 3].trial_id));
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.usage"), 4 * 10);
  ExpectSentIsHeldOrGap();
  // By another process, from what the database says.
  PgCapsStore next({.url = url_});
  const auto rest =
      next.Sweep(kEpoch, {.now_us = kADayOldUs, .duration_max = absl::Seconds(20)}, kAllProjects);
  ASSERT_TRUE(rest.ok() && rest->failed.ok()) << rest.status() << rest->failed;
  EXPECT_EQ(rest->removed.sample_count, 4 * 10);
  EXPECT_EQ(Mark(), Value(writers.back().trial_id));
  EXPECT_EQ(Number("select count(*) from stepwell.gaps"), kTrials);
  EXPECT_EQ(Gaps(writers.front()), "gpu:10");
  EXPECT_EQ(Gaps(writers.back()), ":20");
  SweepAll(kADayOldUs);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
}

// The leaf of samples is dropped and comes again; then rollups are over their age, too.
TEST_F(CapsMarked, TheMarkHoldsUntilRollupsGoAndGoesWithThem) {
  const OpenedWriter writer = OpenOfTwoGroups("t"), quiet = OpenOfTwoGroups("quiet");
  for (const OpenedWriter& each : {writer, quiet}) FillAndMerge(each, 2, 100);
  SweepAll(kADayOldUs);
  SweepAll(kADayOldUs + 5 * kDayUs);
  ASSERT_EQ(Number(absl::StrCat("select count(*) from pg_class where relname = 'metrics_",
                                kLeafSuffix, "'")),
            0);
  for (const OpenedWriter& each : {writer, quiet}) EXPECT_EQ(Lines(each), "0+100 0+100");
  FillAndMerge(writer, 2, 50);
  EXPECT_EQ(Lines(writer), "50+100 50+100");
  ExpectNothingVanished();
  EXPECT_EQ(SweepAll(kADayOldUs + 5 * kDayUs).removed.sample_count, 100);
  EXPECT_EQ(Lines(writer), "0+150 0+150");
  ExpectNothingVanished();
  const SweepResult swept = SweepAll(kADayOldUs + 30 * kDayUs);
  EXPECT_EQ(swept.removed.sample_count, 0) << "all of them are told";
  EXPECT_EQ(swept.removed.raw_bytes, 0);
  EXPECT_GT(swept.removed.rollup_bytes, 0);
  EXPECT_EQ(Number("select count(*) from stepwell.usage_lines where keep_class > 0"), 0);
  EXPECT_EQ(Gaps(writer), ":300");
  EXPECT_EQ(Gaps(quiet), ":200");
  SweepAll(kADayOldUs + 31 * kDayUs);
  EXPECT_EQ(Number("select count(*) from stepwell.swept_leaves"), 0);
  // What comes then is as of a leaf that never was.
  FillAndMerge(writer, 2, 10);
  EXPECT_EQ(Lines(writer), "10+0 10+0");
  ExpectNothingVanished();
  EXPECT_EQ(SweepAll(kADayOldUs + 31 * kDayUs).removed.sample_count, 20);
  EXPECT_EQ(Gaps(writer), ":320");
  ExpectNothingVanished();
}

// Rows of rollups are gone, and their bytes stay in the ledger: its lines still need the mark.
TEST_F(CapsMarked, AMarkStaysAsLongAsALineNeedsIt) {
  const OpenedWriter writer = OpenOfTwoGroups("t");
  FillAndMerge(writer, 2, 100);
  SweepAll(kADayOldUs);
  Run(absl::StrCat("truncate stepwell.rollups_", kLeafSuffix, ", stepwell.rollup_ticks_",
                   kLeafSuffix));
  SweepAll(kADayOldUs + 5 * kDayUs);
  ASSERT_EQ(Number(absl::StrCat("select count(*) from pg_class where relname like '%\\_",
                                kLeafSuffix, "'")),
            0);
  EXPECT_EQ(Lines(writer), "0+100 0+100");
  EXPECT_EQ(Mark(), Value(writer.trial_id));
  ExpectSentIsHeldOrGap();
}

// The ledger names a leaf that is not there: nobody could be held off from bringing it back.
TEST_F(CapsMarked, LinesWithoutTheirLeafAreGivenUpOneByOne) {
  const OpenedWriter writer = OpenOfTwoGroups("t");
  FillAndMerge(writer, 2, 100);
  MoveRollups(kADayOldUs);
  Run("insert into stepwell.swept_leaves (keep_class, received_day, rollups_too, ledger_xid) "
      "values (1, '2024-10-04', false, 1)");
  Run(absl::StrCat("drop table stepwell.metrics_", kLeafSuffix, ", stepwell.ticks_", kLeafSuffix));
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 200);
  EXPECT_EQ(Mark(), 0);
  EXPECT_EQ(Lines(writer), "0+100 0+100");
  ExpectSentIsHeldOrGap();
}

// A deletion takes lines that a mark has given up, and those behind it.
TEST_F(CapsMarked, OfADeletedTrialNoLineStays) {
  const OpenedWriter writer = OpenOfTwoGroups("t"), other = OpenOfTwoGroups("other");
  for (const OpenedWriter& each : {writer, other}) FillAndMerge(each, 2, 100);
  SweepAll(kADayOldUs);
  FillAndMerge(writer, 1, 50, kNowUs + kAnHourUs);
  const auto deleted = caps_.Delete(kEpoch, {.trial_id = Value(writer.trial_id)}, kAllProjects);
  ASSERT_TRUE(deleted.ok() && deleted->done) << deleted.status();
  EXPECT_EQ(deleted->sample_count, 50) << "those that were held";
  EXPECT_EQ(Text(testing::BuriedMismatchSql()), "");
  EXPECT_EQ(Lines(other), "0+100 0+100");
  std::erase_if(sent_,
                [&](const auto& each) { return each.first.first == Value(writer.trial_id); });
  SweepAll(kADayOldUs);
  ExpectNothingVanished();
}

}  // namespace
}  // namespace stepwell
