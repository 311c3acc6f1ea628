// Folds and merges on PostgreSQL: what goes in as tables comes out as rows, each sample once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "storage/rollup.h"
#include "tests/contract/fold_store_test.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::FoldStoreTest;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;
using testing::Samples;
using testing::TestSeed;

class FoldStoreContract : public FoldStoreTest {
 protected:
  // As the transaction that attaches it commits, so that the next statement meets no such table.
  void DropLeafWhenAttached(const std::string& leaf, int times) {
    Run(absl::StrCat("create table stepwell.drops (todo int); insert into stepwell.drops values (",
                     times, ")"));
    Run("create table stepwell.due (leaf text)");
    Run(absl::StrCat(
        "create function stepwell.note() returns event_trigger security definer language "
        "plpgsql as $$ begin "
        "insert into stepwell.due select '",
        leaf,
        "' from pg_event_trigger_ddl_commands() "
        "where object_identity = 'stepwell.",
        leaf, "' and command_tag = 'CREATE TABLE'; end $$"));
    Run("create event trigger note on ddl_command_end when tag in ('CREATE TABLE') execute "
        "function note()");
    Run("create function stepwell.drop_due() returns trigger security definer language plpgsql as "
        "$$ begin "
        "update stepwell.drops set todo = todo - 1 where todo > 0; "
        "if found then execute format('drop table stepwell.%I', new.leaf); end if; return null; "
        "end $$");
    Run("create constraint trigger drop_due after insert on stepwell.due deferrable initially "
        "deferred "
        "for each row execute function stepwell.drop_due()");
  }
};

TEST_F(FoldStoreContract, FoldsAndMovesTheMarkTogether) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 3);
  CommitTo(writer, 1, 5);
  const std::vector<TickTable> tables = {Table(3, 10)};
  const auto folded = folds_->Fold(kEpoch, {FoldOf(writer, 0, 5, tables)});
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->row_count, 3);
  EXPECT_EQ(folded->sample_count, 30);
  EXPECT_EQ(ingest_->ReadProgress(writer.trial_id, {writer.writer_no})->at(0).folded_sequence, 5u);
  EXPECT_EQ(Number("select min(fold_no) from stepwell.recent"), Value(folded->fold_no));
  EXPECT_EQ(Number("select min(tick_no / 65536) from stepwell.recent"), Value(folded->fold_no));
  Samples expected;
  Count(writer, tables, expected);
  EXPECT_EQ(ReadSamples(), expected);
  ExpectUsageAddsUp();
}

TEST_F(FoldStoreContract, RefusesAFoldThatDoesNotContinue) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 5);
  const std::vector<TickTable> tables = {Table(1, 10)};
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 3, tables)}).ok());
  EXPECT_EQ(folds_->Fold(kEpoch, {FoldOf(writer, 0, 3, tables)}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(folds_->Fold(kEpoch, {FoldOf(writer, 4, 5, tables)}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(folds_->Fold(kEpoch, {FoldOf(writer, 3, 9, tables)}).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "beyond what is committed";
  EXPECT_EQ(folds_->Fold(kEpoch + 1, {FoldOf(writer, 3, 5, tables)}).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(folds_->Fold(kEpoch, {FoldOf(writer, 3, 4, tables), FoldOf(writer, 4, 5, tables)})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  const std::vector<TickTable> none;
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 3, 5, none)}).ok());
  ExpectUsageAddsUp();
}

TEST_F(FoldStoreContract, MergesManySmallRowsIntoOnePerSeries) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 5);
  CommitTo(writer, 1, 100);
  std::vector<std::vector<TickTable>> all;
  Samples expected;
  for (int fold = 0; fold < 30; ++fold) {
    all.push_back({Table(5, 10, kNowUs + fold * 10'000'000)});
    Count(writer, all.back(), expected);
    ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, fold, fold + 1, all.back())}).ok());
  }
  MergeLimits limits{.fold_no_max = Newest(), .now_us = kNowUs + 3'000'000'000};
  EXPECT_EQ(MergeAll(limits), 0) << "nothing is ripe";
  limits.now_us = kNowUs + 3'600'000'001;
  limits.rows_max = 70;  // two series at a time
  MergeAll(limits);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.recent_ticks"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 5);
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics_k0_20241004"), 5);
  EXPECT_EQ(ReadSamples(), expected);
  ExpectUsageAddsUp();
}

TEST_F(FoldStoreContract, LeavesFoldsAboveAPinAlone) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 2);
  const std::vector<TickTable> tables = {Table(1, 10)};
  const auto first = folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)});
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 1, 2, tables)}).ok());
  MergeAll({.fold_no_max = first->fold_no, .ripe_tick_count = 1, .now_us = kNowUs});
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.metrics"), 10);
}

TEST_F(FoldStoreContract, KnowsWhatIsRipe) {
  struct Row {
    std::string name;
    int tick_count;
    std::int64_t age_us;
    bool closed;
    bool ripe;
  };
  const std::int64_t hour = 3'600'000'000;
  for (const Row& row : std::vector<Row>{{"young", 100, hour / 2, false, false},
                                         {"an hour old", 100, hour, false, true},
                                         {"slow, an hour old", 59, hour, false, false},
                                         {"slow, a day old", 59, 24 * hour, false, true},
                                         {"full", 3600, 1, false, true},
                                         {"closed", 1, 1, true, true}}) {
    SCOPED_TRACE(row.name);
    const OpenedWriter writer = OpenWriter(row.name);
    AddSeries(writer.trial_id, 1);
    CommitTo(writer, 1, 1,
             row.closed ? std::optional(WriterState::kClosed) : std::optional<WriterState>());
    const std::vector<TickTable> tables = {Table(1, row.tick_count)};
    // Received so that its day is not over: a stretch of a day that is over waits an hour only.
    const std::int64_t received_us = 20'000 * kDayUs + 1;
    ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables, received_us)}).ok());
    MergeAll({.fold_no_max = Newest(), .now_us = received_us + row.age_us});
    EXPECT_EQ(Number(absl::StrCat("select count(*) from stepwell.metrics where trial_id = ",
                                  Value(writer.trial_id))),
              row.ripe ? 1 : 0);
    ASSERT_TRUE(
        sql_->ExecScript("delete from stepwell.recent; delete from stepwell.recent_ticks").ok());
  }
}

TEST_F(FoldStoreContract, MergesAreTheOwnersOnly) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 1, WriterState::kClosed);
  const std::vector<TickTable> tables = {Table(1, 10)};
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)}).ok());
  ASSERT_TRUE(ingest_->SetTrialState(writer.trial_id, TrialState::kCompleted, kEpoch).ok());
  // At rest, but not merged: the next owner fences it all the same, and may merge it.
  ASSERT_TRUE(ingest_->FenceTrials(2).ok());
  const MergeLimits limits{.fold_no_max = Newest(), .now_us = kNowUs};
  EXPECT_EQ(folds_->Merge(1, limits).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  const auto merged = folds_->Merge(2, limits);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->metrics_rows_made, 1);
}

TEST_F(FoldStoreContract, SkipsRowsThatAreDamaged) {
  const std::string dictionary = "form = 5, width = 1, width2 = 0, bits = B'0000000000', ";
  const std::vector<std::string> damages = {
      "form = 77",
      // Arrays that no master writes.
      dictionary + "dictionary = null, raw = '{{0.5,1},{2,3}}'",
      dictionary + "dictionary = null, raw = '{null,1}'",
      dictionary + "raw = null, dictionary = '{{1,2},{3,4}}'",
      dictionary + "raw = null, dictionary = '{null,1}'",
  };
  const std::vector<TickTable> tables = {Table(1, 10)};
  const auto fold = [&](const std::string& trial) {
    const OpenedWriter writer = OpenWriter(trial);
    AddSeries(writer.trial_id, 1);
    CommitTo(writer, 1, 1, WriterState::kClosed);
    EXPECT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)}).ok());
    return writer.trial_id;
  };
  for (const std::string& damage : damages) {
    const TrialId trial_id = fold("bad: " + damage);
    const std::string text =
        absl::StrCat("update stepwell.recent set ", damage, " where trial_id = $1");
    const auto done = sql_->Exec(SqlOf(text), {Value(trial_id)});
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_EQ(done->affected_count(), 1) << damage;
  }
  fold("good");
  MergeAll({.fold_no_max = Newest(), .now_us = kNowUs});
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), static_cast<int>(damages.size()));
}

// Each pick has room for one, and it is the oldest that cannot be merged.
TEST_F(FoldStoreContract, WhatTheDatabaseRefusesKeepsNoOthersWaiting) {
  const std::vector<TickTable> tables = {Table(1, 10)};
  Samples expected;
  const auto fold = [&](const std::string& trial) {
    const OpenedWriter writer = OpenWriter(trial);
    AddSeries(writer.trial_id, 1);
    CommitTo(writer, 1, 1, WriterState::kClosed);
    EXPECT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)}).ok());
    Count(writer, tables, expected);
    return Value(writer.trial_id);
  };
  const std::int64_t refused = fold("refused");
  fold("good");
  fold("good too");
  Run(absl::StrCat("create function stepwell.refuse() returns trigger language plpgsql as ",
                   "$$ begin if new.trial_id = ", refused,
                   " then raise exception 'a damaged page'; end if; return new; end $$"));
  Run("create trigger refuse before insert on stepwell.metrics "
      "for each row execute function stepwell.refuse()");
  MergeAll({.fold_no_max = Newest(), .now_us = kNowUs, .picks_max = 1});
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2);
  EXPECT_EQ(Number("select max(trial_id) from stepwell.recent"), refused);
  EXPECT_EQ(ReadSamples(), expected);
  Run("drop trigger refuse on stepwell.metrics");
  MergeAll({.fold_no_max = Newest(), .now_us = kNowUs, .picks_max = 1});
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1) << "it still waits";
  Reopen();
  MergeAll({.fold_no_max = Newest(), .now_us = kNowUs, .picks_max = 1});
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(ReadSamples(), expected);
  ExpectUsageAddsUp();
}

// Sweeps that follow each other drop the leaf that the merge has just attached, several times: it is tried again at once, and no
// row is put aside.
TEST_F(FoldStoreContract, ALeafThatIsDroppedWheneverItWasAttachedIsNoReasonToPutRowsAside) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 1, WriterState::kClosed);
  const std::vector<TickTable> tables = {Table(1, 10)};
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)}).ok());
  DropLeafWhenAttached("metrics_k0_20241004", 5);
  const MergeLimits limits{.fold_no_max = Newest(), .now_us = kNowUs};
  using enum absl::StatusCode;
  std::vector<absl::StatusCode> told;
  for (int call = 0; call < 20 && Number("select count(*) from stepwell.recent") > 0; ++call) {
    told.push_back(folds_->Merge(kEpoch, limits).status().code());
  }
  // The first is told the log alone, two in a row their caller, who begins anew a little later.
  EXPECT_EQ(Number("select todo from stepwell.drops"), 0);
  EXPECT_THAT(told,
              ::testing::ElementsAre(kOk, kFailedPrecondition, kOk, kFailedPrecondition, kOk, kOk));
  Samples expected;
  Count(writer, tables, expected);
  EXPECT_EQ(ReadSamples(), expected);
  ExpectUsageAddsUp();
}

// Buckets of `step` seconds that the samples have, counted by SQL from the decoded samples, and the
// rollups do not say the same of, or the other way round.
std::string RollupDifferences(int step) {
  return absl::StrCat(R"(
with samples as (
  select trial_id, series_no, floor(extract(epoch from t) / )",
                      step, R"()::bigint * )", step, R"( as start, count(*) as n,
    count(*) filter (where v = 'NaN') as nans, min(v) filter (where v <> 'NaN') as low,
    max(v) filter (where v <> 'NaN') as high, sum(v) filter (where v <> 'NaN') as total
  from stepwell.decoded_metrics m,
    unnest(m.timestamps, m.values) as u (t, v) group by 1, 2, 3
), rollups as (
  select trial_id, series_no, extract(epoch from t)::bigint as start, sum(n) as n,
    sum(nans) as nans, min(low) filter (where n > nans) as low,
    max(high) filter (where n > nans) as high, sum(total) as total
  from stepwell.decoded_rollups r,
    unnest(r.starts, r.counts, r.nan_counts, r.mins, r.maxs, r.sums)
      as u (t, n, nans, low, high, total)
  where r.step_seconds = )",
                      step, R"( group by 1, 2, 3
)
select count(*) from samples s full join rollups r using (trial_id, series_no, start)
where (s.n, s.nans, s.low, s.high) is distinct from (r.n, r.nans, r.low, r.high)
  or abs(s.total - r.total) > 1e-9 * abs(s.total))");
}

// Random tables of random writers, folded and merged at random, against a multiset.
TEST_F(FoldStoreContract, KeepsEachSampleOnce) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  struct Model {
    OpenedWriter writer;
    std::uint64_t sequence = 0;
  };
  std::vector<Model> models;
  for (int i = 0; i < 4; ++i) {
    models.push_back({.writer = OpenWriter(i % 2 == 0 ? "a" : "b")});
    AddSeries(models.back().writer.trial_id, 40);
    CommitTo(models.back().writer, 1, 1000);
  }
  Samples expected;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<TickTable>> tables(models.size());
    std::vector<WriterFold> folds;
    for (std::size_t i = 0; i < models.size(); ++i) {
      if (below(3) == 0) continue;
      for (std::uint64_t t = 0; t <= below(4); ++t) {
        TickTable& table = tables[i].emplace_back();
        table.tick_group = static_cast<std::uint32_t>(below(3));
        const std::uint64_t tick_count = below(30) == 0 ? 4000 : below(40);
        std::int64_t at = kNowUs + static_cast<std::int64_t>(below(7200)) * 1'000'000;
        if (below(20) == 0) at = 0;
        for (std::uint64_t tick = 0; tick < tick_count; ++tick) {
          at += static_cast<std::int64_t>(below(2'000'000)) - (below(10) == 0 ? 3'000'000 : 0);
          table.times_us.push_back(at);
          table.batches.push_back(static_cast<std::int32_t>(below(100)) - 1);
        }
        std::set<std::int32_t> series;
        for (std::uint64_t c = 0; c < below(8); ++c) {
          series.insert(static_cast<std::int32_t>(1 + below(40)));
        }
        for (const std::int32_t series_no : series) {
          TickColumn& column = table.columns.emplace_back();
          column.series_no = SeriesNo{series_no};
          const bool sparse = below(3) == 0;
          for (std::uint64_t tick = 0; tick < tick_count; ++tick) {
            if (sparse) column.presence.push_back(below(3) == 0 ? 0 : 1);
            if (sparse && column.presence.back() == 0) continue;
            column.values.push_back(below(50) == 0 ? std::bit_cast<double>(random())
                                                   : static_cast<double>(below(1000)) / 100);
          }
        }
      }
      Count(models[i].writer, tables[i], expected);
      const std::uint64_t from = models[i].sequence;
      models[i].sequence += 1 + below(3);
      WriterFold fold = FoldOf(models[i].writer, from, models[i].sequence, tables[i]);
      if (below(4) == 0) fold.parts[0].received_time_us += kDayUs;
      folds.push_back(fold);
    }
    const auto folded = folds_->Fold(kEpoch, folds);
    ASSERT_TRUE(folded.ok()) << folded.status();
    if (below(10) == 0) Reopen({});
    if (below(3) == 0) {
      const MergeLimits limits{.fold_no_max = folded->fold_no,
                               .ripe_tick_count = static_cast<std::int32_t>(1 + below(300)),
                               .now_us = kNowUs,
                               .rows_max = static_cast<std::int32_t>(1 + below(200))};
      for (std::uint64_t call = 0; call <= below(6); ++call) {
        const auto merged = folds_->Merge(kEpoch, limits);
        ASSERT_TRUE(merged.ok()) << merged.status();
      }
    }
    if (round % 20 == 19) {
      ASSERT_TRUE(ReadSamples() == expected) << "round " << round;
      ExpectUsageAddsUp();
    }
  }
  MergeAll({.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs});
  EXPECT_TRUE(ReadSamples() == expected);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.recent_ticks"), 0);
  ExpectUsageAddsUp();
  for (const int step : kRollupSteps) EXPECT_EQ(Number(RollupDifferences(step).c_str()), 0) << step;
  EXPECT_EQ(Number("select count(*) from stepwell.usage "
                   "where rollup_byte_count <= 0 or not has_rollups"),
            0);
}

}  // namespace
}  // namespace stepwell
