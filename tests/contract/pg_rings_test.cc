// The leaves of metrics, the ring of the journal and the ring of recent, beside readers that hold
// locks and snapshots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "storage/pg_caps_store.h"
#include "storage/pg_error.h"
#include "tests/contract/pg_store_test.h"
#include "tests/support/damaged_table.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::DamageTable;
using testing::kEpoch;
using testing::kNowUs;
using testing::PgStoreTest;

using PgRings = PgStoreTest;

TEST_F(PgRings, AnOpenReaderDelaysNeitherLeavesNorCommits) {
  const OpenedWriter writer = OpenWriter("t");
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 1)})).ok());
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->Begin().ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.metrics").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.recent").ok());
  for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
    ASSERT_TRUE(
        reader->Exec(SqlOf(absl::StrCat("select count(*) from stepwell.journal_", i))).ok());
  }
  const absl::Time start = absl::Now();
  const absl::Status attached = folds_->AttachLeaves(kNowUs);
  EXPECT_TRUE(attached.ok()) << attached;
  EXPECT_EQ(Number("select count(*) from pg_inherits "
                   "where inhparent = 'stepwell.metrics'::regclass"),
            4);
  EXPECT_TRUE(folds_->AttachLeaves(kNowUs).ok());
  MarkAllFolded();
  EXPECT_TRUE(folds_->RecycleJournal(kEpoch, INT64_MAX).ok());
  EXPECT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 2)})).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  ASSERT_TRUE(reader->Commit().ok());
}

TEST_F(PgRings, RecyclesTheJournalWhenAllIsFolded) {
  const OpenedWriter writer = OpenWriter("t");
  // Each commit is received more than a minute before now: the ring advances each time.
  std::uint64_t sequence = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, ++sequence)})).ok());
    ASSERT_TRUE(folds_->RecycleJournal(kEpoch, 0).ok());
  }
  EXPECT_EQ(journal_->current(), 3);
  EXPECT_EQ(JournalRows(), 3);
  Run("update stepwell.writers set folded_sequence = 2");
  // A wrong mark of the caller's does no harm: the database knows what is folded.
  ASSERT_TRUE(folds_->RecycleJournal(kEpoch, INT64_MAX).ok());
  EXPECT_EQ(JournalRows(), 1);
  EXPECT_EQ(Number("select first_sequences[1] from stepwell.journal_2"), 3);
  // While somebody reads the segment it is skipped, and the ring goes round it.
  Run("update stepwell.writers set folded_sequence = 3");
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->Begin().ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.journal_2").ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, ++sequence)})).ok());
    MarkAllFolded();
    ASSERT_TRUE(folds_->RecycleJournal(kEpoch, INT64_MAX).ok());
    EXPECT_NE(journal_->current(), 2);
  }
  ASSERT_TRUE(reader->Commit().ok());
  ASSERT_TRUE(folds_->RecycleJournal(kEpoch, INT64_MAX).ok());
  EXPECT_LE(JournalRows(), 1);
}

// One that grew until nothing could go through it in time kept all others, and the current one was never left.
TEST_F(PgRings, ASegmentThatCannotBeLookedThroughKeepsNoOther) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, i)})).ok());
    if (i == 4) break;
    ASSERT_TRUE(folds_->RecycleJournal(kEpoch, 0).ok());
  }
  ASSERT_EQ(journal_->current(), 3);
  MarkAllFolded();
  Run("alter table stepwell.journal_0 rename column last_sequences to others");
  const absl::Status recycled = folds_->RecycleJournal(kEpoch, INT64_MAX);
  EXPECT_FALSE(recycled.ok());
  EXPECT_THAT(std::string(recycled.message()), ::testing::HasSubstr("journal segment 0"));
  EXPECT_EQ(Number("select count(*) from stepwell.journal_1"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.journal_2"), 0);
  EXPECT_EQ(journal_->current(), 4) << "the one that commits write into was full";
}

TEST_F(PgRings, AStartedStoreGoesOnInTheNewestSegment) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, i)})).ok());
    ASSERT_TRUE(folds_->RecycleJournal(kEpoch, 0).ok());
  }
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 4)})).ok());
  const auto ring = std::make_shared<JournalRing>();
  const auto restarted = PgIngestStore::Open({.url = url_}, ring);
  ASSERT_TRUE(restarted.ok()) << restarted.status();
  EXPECT_EQ(ring->current(), 3);
  EXPECT_EQ(ring->segment(1).row_count, 1);
  ASSERT_TRUE((*restarted)->Commit(Group({Advance(writer, 5)})).ok());
  EXPECT_EQ(Number("select count(*) from stepwell.journal_3"), 2);
}

// The clock was hours ahead until the last start: what it wrote is no younger than what comes now.
TEST_F(PgRings, RowsOfAClockThatWasSetBackKeepNoSegment) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, i)})).ok());
    if (i == 3) break;
    ASSERT_TRUE(folds_->RecycleJournal(kEpoch, 0).ok());
  }
  const std::int64_t ahead_us = absl::ToUnixMicros(absl::Now() + absl::Hours(10));
  for (int i = 0; i < 3; ++i) {
    Run(absl::StrCat("update stepwell.journal_", i, " set received_time_us = ", ahead_us + i));
  }
  const auto ring = std::make_shared<JournalRing>();
  const auto ingest = PgIngestStore::Open({.url = url_}, ring);
  ASSERT_TRUE(ingest.ok()) << ingest.status();
  const auto folds = PgFoldStore::Open({.url = url_}, ring);
  ASSERT_TRUE(folds.ok()) << folds.status();
  ASSERT_EQ(ring->current(), 2);
  Run("update stepwell.writers set folded_sequence = 3");
  CommitGroupRequest unfolded = Group({Advance(writer, 4)});
  unfolded.received_time_us = absl::ToUnixMicros(absl::Now());
  ASSERT_TRUE((*ingest)->Commit(unfolded).ok());
  ASSERT_TRUE((*folds)->RecycleJournal(kEpoch, unfolded.received_time_us).ok());
  EXPECT_EQ(Number("select count(*) from stepwell.journal_0"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.journal_1"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.journal_2"), 2);
  EXPECT_EQ(Number(absl::StrCat("select count(*) from stepwell.journal_2 "
                                "where received_time_us > ",
                                ahead_us)),
            2)
      << "times of rows ascend";
}

// A stopped master that wakes up after a take-over empties nothing.
TEST_F(PgRings, AFormerOwnerRecyclesNothing) {
  ASSERT_EQ(ingest_->AcquireOwnership({.master_id = "a", .address = "a:1"})->epoch, kEpoch);
  const OpenedWriter writer = OpenWriter("t");
  CommitTo(writer, 1, 1);
  ASSERT_TRUE(folds_->RecycleJournal(kEpoch, 0).ok());  // on to the next segment
  MarkAllFolded();
  Run("update stepwell.masters set epoch = 2, master_id = 'b'");
  EXPECT_EQ(folds_->RecycleJournal(kEpoch, INT64_MAX).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(JournalRows(), 1);
  ASSERT_TRUE(folds_->RecycleJournal(2, INT64_MAX).ok());
  EXPECT_EQ(JournalRows(), 0);
}

// Rows of as many bytes as they may have, of one writer and of many: PostgreSQL takes none out of its page.
TEST_F(PgRings, RowsOfTheJournalLieInTheirPage) {
  std::vector<OpenedWriter> writers;
  for (int i = 0; i < 300; ++i) writers.push_back(OpenWriter("t"));
  CommitGroupRequest many = Group({});
  for (const OpenedWriter& writer : writers) many.advances.push_back(Advance(writer, 1));
  ASSERT_TRUE(ingest_->Commit(many).ok());
  const auto commit_chunks = [&](std::uint64_t first, std::size_t bytes) {
    WriterAdvance advance = Advance(writers[0], first, first + 9);
    advance.payload.assign(10 * bytes, 'x');
    for (std::uint64_t i = 1; i <= 10; ++i) advance.cuts.push_back({first + i - 1, i * bytes});
    const auto results = ingest_->Commit(Group({advance}));
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->at(0).outcome, AdvanceOutcome::kCommitted);
  };
  std::uint64_t first = 2;
  // Of 7792 a chunk and the heads of its row and range fill it to the byte.
  for (const std::size_t bytes : {7792, 3896, 779, 100}) {
    ASSERT_NO_FATAL_FAILURE(commit_chunks(first, bytes));
    first += 10;
  }
  EXPECT_EQ(Number("select pg_relation_size(reltoastrelid) from pg_class "
                   "where oid = 'stepwell.journal_0'::regclass"),
            0);
  EXPECT_GT(Number("select max(pg_column_size(j.*)) from stepwell.journal_0 j"), 7900);
  ASSERT_NO_FATAL_FAILURE(commit_chunks(first, 9000));
  EXPECT_GT(Number("select pg_relation_size(reltoastrelid) from pg_class "
                   "where oid = 'stepwell.journal_0'::regclass"),
            0);
}

class RecentRingTest : public PgRings {
 protected:
  void FoldOne(const std::string& trial, bool close) {
    const OpenedWriter writer = OpenWriter(trial);
    SeriesDefinition definition;
    definition.key = {.metric_group = "gpu", .name = "util", .labels = {}};
    ASSERT_TRUE(ingest_->FindOrCreateSeries(writer.trial_id, {definition}, 10).ok());
    WriterAdvance advance = Advance(writer, 1);
    if (close) advance.closing = WriterState::kClosed;
    ASSERT_TRUE(ingest_->Commit(Group({advance})).ok());
    const std::vector<TickTable> tables = {
        {.tick_group = 1,
         .times_us = {kNowUs},
         .batches = {1},
         .columns = {{.series_no = SeriesNo{1}, .values = {5}, .presence = {}}}}};
    WriterFold fold;
    fold.trial_id = writer.trial_id;
    fold.writer_no = writer.writer_no;
    fold.to_sequence = 1;
    fold.parts = {{.received_time_us = kNowUs, .tables = &tables}};
    const auto folded = folds_->Fold(kEpoch, {fold});
    ASSERT_TRUE(folded.ok()) << folded.status();
  }
  void MergeAll() {
    const auto merged =
        folds_->Merge(kEpoch, {.fold_no_max = *folds_->NextFoldNo(), .now_us = kNowUs});
    ASSERT_TRUE(merged.ok()) << merged.status();
  }
  std::int64_t SegmentBytes(int segment) {
    return Number(absl::StrCat("select pg_relation_size('stepwell.recent_", segment, "')"));
  }
  std::int64_t SegmentRows(int segment) {
    return Number(absl::StrCat("select count(*) from stepwell.recent_", segment));
  }
};

TEST_F(RecentRingTest, TruncatesWhatNobodyCanSeeAnyMore) {
  Reopen({.age_max_us = 0});
  FoldOne("a", true);
  EXPECT_EQ(SegmentRows(0), 1);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());  // full: folds go to the next
  FoldOne("b", true);
  EXPECT_EQ(SegmentRows(1), 1);
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  MergeAll();
  MergeAll();
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_GT(SegmentBytes(0), 0) << "the reader still sees its row";
  const auto seen = reader->Exec("select count(*) from stepwell.recent");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->Int64(0, 0), 2);
  ASSERT_TRUE(reader->Commit().ok());
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_EQ(SegmentBytes(0), 0);
}

// The newest merge is older than the reader, the deletion is not: it happens on a connection that the ring knows
// nothing of.
TEST_F(RecentRingTest, KeepsWhatASnapshotOfBeforeADeletionSees) {
  Reopen({.age_max_us = 0});
  FoldOne("merged", true);
  FoldOne("deleted", false);
  EXPECT_EQ(SegmentRows(0), 2);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());  // full: folds go to the next
  MergeAll();
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  ASSERT_EQ(SegmentRows(0), 1) << "of the one that is still open";
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  PgCapsStore caps({.url = url_});
  const auto deleted = caps.Delete(kEpoch, {.external_id = "deleted"}, kAllProjects);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  ASSERT_TRUE(deleted->done);
  ASSERT_EQ(SegmentRows(0), 0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_GT(SegmentBytes(0), 0) << "the reader still sees its row";
  const auto seen = reader->Exec("select count(*) from stepwell.recent");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->Int64(0, 0), 1);
  ASSERT_TRUE(reader->Commit().ok());
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_EQ(SegmentBytes(0), 0);
}

// As a fold whose COMMIT is in doubt: its rows come after the look, and go before the next one.
TEST_F(RecentRingTest, ASegmentThatSomebodyIsWritingToIsNotKnownToBeEmpty) {
  Reopen({.age_max_us = 0});
  FoldOne("a", true);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  const auto writer = Connect(url_);
  ASSERT_TRUE(writer->ExecScript("create temp table kept as select * from stepwell.recent_0").ok());
  MergeAll();
  ASSERT_TRUE(writer->Begin().ok());
  ASSERT_TRUE(writer->ExecScript("insert into stepwell.recent_0 select * from kept").ok());
  const absl::Time start = absl::Now();
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  ASSERT_TRUE(writer->Commit().ok());
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  Run("delete from stepwell.recent_0");
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_GT(SegmentBytes(0), 0) << "the reader still sees its row";
  const auto seen = reader->Exec("select count(*) from stepwell.recent");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->Int64(0, 0), 1);
}

TEST_F(RecentRingTest, SkipsASegmentThatSomebodyHolds) {
  Reopen({.age_max_us = 0});
  FoldOne("a", true);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  MergeAll();
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->Begin().ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.recent_0").ok());  // keeps its lock
  const absl::Time start = absl::Now();
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_GT(SegmentBytes(0), 0);
  ASSERT_TRUE(reader->Commit().ok());
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_EQ(SegmentBytes(0), 0);
}

TEST_F(RecentRingTest, CarriesUnripeRowsIntoTheNewestSegment) {
  Reopen({.age_max_us = 0});
  for (int round = 0; round < 10; ++round) {
    FoldOne(absl::StrCat("open", round), false);  // never ripe
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  }
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 10);
  EXPECT_EQ(Number("select count(*) from stepwell.recent_ticks"), 10);
  EXPECT_EQ(Number("select count(*) from stepwell.recent where fold_no <> tick_no / 65536"), 0);
}

TEST_F(RecentRingTest, AFormerOwnerRecyclesNothing) {
  Reopen({.age_max_us = 0});
  ASSERT_EQ(ingest_->AcquireOwnership({.master_id = "a", .address = "a:1"})->epoch, kEpoch);
  FoldOne("a", true);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  MergeAll();
  Run("update stepwell.masters set epoch = 2, master_id = 'b'");
  EXPECT_EQ(folds_->RecycleRecent(kEpoch).code(), absl::StatusCode::kAborted);
  EXPECT_GT(SegmentBytes(0), 0);
  ASSERT_TRUE(folds_->RecycleRecent(2).ok());
  EXPECT_EQ(SegmentBytes(0), 0);
}

// A standby looked at the ring when it started; the owner has turned it since.
TEST_F(RecentRingTest, ATakeOverGoesOnWhereTheFormerOwnerWas) {
  Reopen({.age_max_us = 0});
  const auto standby = OpenFolds();
  FoldOne("a", true);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  FoldOne("b", false);
  EXPECT_EQ(SegmentRows(1), 1);
  MergeAll();
  EXPECT_EQ(SegmentRows(0), 0);
  ASSERT_TRUE(ingest_->FenceTrials(2).ok());
  const OpenedWriter writer = OpenWriter("c", 2);
  AddSeries(writer.trial_id, 1);
  const std::vector<TickTable> tables = {Table(1, 1)};
  CommitGroupRequest commit = Group({Advance(writer, 1)});
  commit.owner_epoch = 2;
  ASSERT_TRUE(ingest_->Commit(commit).ok());
  ASSERT_TRUE(standby->Fold(2, {FoldOf(writer, 0, 1, tables)}).ok());
  EXPECT_EQ(SegmentRows(1), 2) << "the segment that was current";
  EXPECT_GT(SegmentBytes(0), 0);
  ASSERT_TRUE(standby->RecycleRecent(2).ok());
  EXPECT_EQ(SegmentBytes(0), 0) << "what the former owner had left over is emptied";
}

// A VACUUM that takes long: folds and recycling go on beside it.
TEST_F(RecentRingTest, AVacuumHoldsUpNobody) {
  Run(absl::StrCat("alter database \"", Text("select current_database()::text"),
                   "\" set vacuum_cost_delay = 100; alter database \"",
                   Text("select current_database()::text"), "\" set vacuum_cost_limit = 1"));
  Reopen({.age_max_us = 0});
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  const char* vacuums =
      "select count(*) from pg_stat_activity where query like 'vacuum%' "
      "and state = 'active' and datname = current_database()";
  absl::Duration slowest;
  int rounds_beside = 0;
  for (int round = 0; round < 200 && rounds_beside < 3; ++round) {
    FoldOne(absl::StrCat("t", round), true);
    MergeAll();
    const absl::Time begin = absl::Now();
    ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
    slowest = std::max(slowest, absl::Now() - begin);
    if (Number(vacuums) > 0) ++rounds_beside;
  }
  EXPECT_EQ(rounds_beside, 3) << "no VACUUM was seen at work";
  EXPECT_LT(slowest, absl::Seconds(3)) << "of a VACUUM that sleeps 0.4 s at each page";
  const absl::Time begin = absl::Now();
  folds_.reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5)) << "closing cancels it";
}

TEST_F(RecentRingTest, GoesOnUnderASnapshotThatNeverEnds) {
  Reopen({.age_max_us = 0});
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  for (int round = 0; round < 10; ++round) {
    FoldOne(absl::StrCat("t", round), true);
    MergeAll();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  }
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 10);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
}

TEST_F(RecentRingTest, AStartedStoreGoesOnInTheNewestSegment) {
  Reopen({.age_max_us = 0});
  FoldOne("a", false);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  FoldOne("b", false);
  Reopen();
  FoldOne("c", false);
  EXPECT_EQ(SegmentRows(0), 1);
  EXPECT_EQ(SegmentRows(1), 2);
}

// A page of a segment is junk, as after a disk that lied: the rest of the ring turns on.
class DamagedRingTest : public RecentRingTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Merges until nothing is ripe; what cannot be merged waits aside.
  void MergeAllOf(std::int64_t owner_epoch) {
    for (int i = 0; i < 100; ++i) {
      const auto merged =
          folds_->Merge(owner_epoch, {.fold_no_max = *folds_->NextFoldNo(), .now_us = kNowUs});
      ASSERT_TRUE(merged.ok()) << merged.status();
      if (!merged->more) return;
    }
    ADD_FAILURE() << "merging never ends";
  }
};

TEST_P(DamagedRingTest, AMasterStartsAndTheRingTurnsBesideAPageThatCannotBeRead) {
  Reopen({.age_max_us = 0});
  FoldOne("damaged", true);
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  FoldOne("beside", true);
  ASSERT_EQ(SegmentRows(1), 1);
  ASSERT_NO_FATAL_FAILURE(DamageTable(*sql_, GetParam()));
  ASSERT_NO_FATAL_FAILURE(Reopen({.age_max_us = 0}));
  // Trials that are over are fenced for what is not merged of them.
  Run("update stepwell.trials set state = 2");
  ASSERT_TRUE(ingest_->FenceTrials(kEpoch + 1).ok());
  EXPECT_EQ(
      Number(absl::StrCat("select count(*) from stepwell.trials where owner_epoch = ", kEpoch + 1)),
      2);
  Run(absl::StrCat("update stepwell.trials set owner_epoch = ", kEpoch));
  MergeAllOf(kEpoch);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 1);
  for (int round = 0; round < 10; ++round) {
    FoldOne(absl::StrCat("later", round), true);
    MergeAllOf(kEpoch);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  }
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 11);
  EXPECT_GT(Number(absl::StrCat("select pg_relation_size('stepwell.", GetParam(), "')")), 0)
      << "what cannot be read is not thrown away";
  EXPECT_EQ(SegmentRows(1) + SegmentRows(2) + SegmentRows(3), 0);
  PgCapsStore caps({.url = url_});
  ASSERT_TRUE(
      caps.Set(kEpoch, {}, kAllProjects, {.raw_age_seconds = 86'400, .series_samples = 1}, {})
          .ok());
  const auto swept = caps.Sweep(kEpoch, {.now_us = kNowUs + 5 * testing::kDayUs}, kAllProjects);
  ASSERT_TRUE(swept.ok()) << swept.status();
  // What the audit of the ledger cannot count there it says; the sweep went on beside it.
  if (!swept->failed.ok()) {
    EXPECT_NE(swept->failed.message().find("audit of the ledger"), std::string::npos)
        << swept->failed;
  }
}

TEST_P(DamagedRingTest, FoldsGoToAnotherSegmentWhereTheirOwnCannotBeWritten) {
  FoldOne("damaged", true);
  ASSERT_NO_FATAL_FAILURE(DamageTable(*sql_, GetParam()));
  const OpenedWriter writer = OpenWriter("beside");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 1, WriterState::kClosed);
  const std::vector<TickTable> tables = {Table(1, 1)};
  const auto refused = folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)});
  EXPECT_TRUE(IsUnreadable(refused.status())) << refused.status();
  const auto folded = folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)});
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(SegmentRows(1), 1);
  MergeAllOf(kEpoch);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 1);
}

INSTANTIATE_TEST_SUITE_P(, DamagedRingTest, ::testing::Values("recent_ticks_0", "recent_0"));

}  // namespace
}  // namespace stepwell
