// PgIngestStore and PgFoldStore when backends die, outcomes are unknown, and others hold locks.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "storage/pg_error.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::TestPostgres;

constexpr std::int64_t kEpoch = 1;
constexpr std::int64_t kNowUs = 20'000 * 86'400'000'000;

class PgStoreFaults : public ::testing::Test {
 protected:
  PgStoreFaults() { Reopen(); }

  void Reopen(RecentRing::Limits recent = {}) {
    auto ingest = PgIngestStore::Open({.url = url_, .at_point = at_point_}, journal_);
    ASSERT_TRUE(ingest.ok()) << ingest.status();
    ingest_ = *std::move(ingest);
    auto folds = PgFoldStore::Open({.url = url_, .recent = recent}, journal_);
    ASSERT_TRUE(folds.ok()) << folds.status();
    folds_ = *std::move(folds);
  }
  OpenedWriter OpenWriter(const std::string& trial) {
    OpenWriterRequest request;
    request.trial.external_id = trial;
    request.writer = Uuid::Random();
    request.attempt_key = "job";
    request.owner_epoch = kEpoch;
    auto opened = ingest_->OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *opened;
  }
  static WriterAdvance Advance(const OpenedWriter& writer, std::uint64_t sequence) {
    WriterAdvance advance;
    advance.trial_id = writer.trial_id;
    advance.writer_no = writer.writer_no;
    advance.generation = writer.generation;
    advance.first_sequence = sequence;
    advance.last_sequence = sequence;
    advance.payload = absl::StrCat("chunk ", sequence);
    return advance;
  }
  static CommitGroupRequest Group(std::vector<WriterAdvance> advances) {
    return {.owner_epoch = kEpoch, .received_time_us = kNowUs, .advances = std::move(advances)};
  }
  std::uint64_t Committed(const OpenedWriter& writer) {
    const auto progress = ingest_->ReadProgress(writer.trial_id, {writer.writer_no});
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress->at(0).committed_sequence;
  }
  std::int64_t Number(const std::string& sql) {
    const auto row = sql_->Exec(sql.c_str());
    EXPECT_TRUE(row.ok()) << row.status() << " " << sql;
    return row.ok() ? row->Int64(0, 0) : -1;
  }
  std::int64_t JournalRows() {
    std::int64_t rows = 0;
    for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
      rows += Number(absl::StrCat("select count(*) from stepwell.journal_", i));
    }
    return rows;
  }
  void Run(const std::string& sql) {
    const absl::Status status = sql_->ExecScript(sql);
    ASSERT_TRUE(status.ok()) << status << " " << sql;
  }
  // Waits until some backend of this database shows `condition` in pg_stat_activity, and kills it.
  static void KillWhen(const std::string& url, const std::string& condition) {
    const auto sql = Connect(url);
    const std::string kill = absl::StrCat(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid() and ",
        condition);
    for (const absl::Time deadline = absl::Now() + absl::Seconds(20); absl::Now() < deadline;) {
      const auto killed = sql->Exec(kill.c_str());
      ASSERT_TRUE(killed.ok()) << killed.status();
      if (killed->row_count() > 0) return;
    }
    ADD_FAILURE() << "no backend with " << condition;
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::unique_ptr<PgConnection> sql_ = Connect(url_);
  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  std::function<void(std::string_view, int)> at_point_;
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> folds_;
};

TEST_F(PgStoreFaults, AKilledBackendLosesTheGroupAndNothingElse) {
  std::string kill_at;
  at_point_ = [&](std::string_view point, int backend_pid) {
    if (point != kill_at) return;
    kill_at.clear();
    EXPECT_EQ(Number(absl::StrCat("select pg_terminate_backend(", backend_pid, ", 5000)::int")), 1);
  };
  Reopen();
  const OpenedWriter writer = OpenWriter("t");
  std::uint64_t sequence = 1;
  for (const std::string point : {"commit_before_begin", "commit_after_guard", "commit_mid_copy",
                                  "commit_before_commit", "commit_after_commit"}) {
    SCOPED_TRACE(point);
    kill_at = point;
    const auto results = ingest_->Commit(Group({Advance(writer, sequence)}));
    if (point == "commit_after_commit") {
      ASSERT_TRUE(results.ok()) << results.status();
    } else if (point == "commit_before_commit") {
      // The COMMIT was sent into a dead connection: read back, and told to be not there.
      EXPECT_EQ(results.status().code(), absl::StatusCode::kUnavailable) << results.status();
      EXPECT_FALSE(IsCommitUnknown(results.status()));
    } else {
      EXPECT_EQ(results.status().code(), absl::StatusCode::kUnavailable) << results.status();
    }
    const std::uint64_t stored = results.ok() ? sequence : sequence - 1;
    EXPECT_EQ(Committed(writer), stored);
    EXPECT_EQ(JournalRows(), static_cast<std::int64_t>(stored));
    if (!results.ok()) {
      const auto again = ingest_->Commit(Group({Advance(writer, sequence)}));
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->at(0).outcome, AdvanceOutcome::kCommitted);
    }
    ++sequence;
  }
}

// With a standby that never answers, COMMIT waits after the record is durable: a backend killed
// then has committed, and its client cannot know.
TEST_F(PgStoreFaults, ReadsBackACommitThatHappened) {
  const OpenedWriter writer = OpenWriter("t");
  const OpenedWriter other = OpenWriter("t");
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 1)})).ok());
  const auto admin = Connect(url_);
  ASSERT_TRUE(admin->ExecScript("alter system set synchronous_standby_names = 'nobody'").ok());
  ASSERT_TRUE(admin->ExecScript("select pg_reload_conf()").ok());
  std::thread killer(KillWhen, url_, "wait_event = 'SyncRep'");
  WriterAdvance closes = Advance(other, 1);
  closes.last_sequence = 0;
  closes.payload.clear();
  closes.closing = WriterState::kClosed;
  const auto in_doubt = ingest_->Commit(Group({Advance(writer, 2), closes}));
  killer.join();
  ASSERT_TRUE(admin->ExecScript("alter system reset synchronous_standby_names").ok());
  ASSERT_TRUE(admin->ExecScript("select pg_reload_conf()").ok());
  ASSERT_TRUE(in_doubt.ok()) << in_doubt.status();
  EXPECT_EQ(in_doubt->at(0).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(in_doubt->at(0).committed_sequence, 2u);
  EXPECT_EQ(in_doubt->at(1).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(JournalRows(), 2);
}

// A deferred trigger makes COMMIT wait before the record is written.
TEST_F(PgStoreFaults, ReadsBackACommitThatDidNotHappen) {
  const OpenedWriter writer = OpenWriter("t");
  Run(R"(
create function wait_at_commit() returns trigger language plpgsql as
  $$ begin perform pg_sleep(60); return null; end $$;
create constraint trigger wait_at_commit after update on stepwell.writers
  deferrable initially deferred for each row execute function wait_at_commit())");
  std::thread killer(KillWhen, url_, "query = 'commit' and wait_event = 'PgSleep'");
  const auto results = ingest_->Commit(Group({Advance(writer, 1)}));
  killer.join();
  EXPECT_EQ(results.status().code(), absl::StatusCode::kUnavailable) << results.status();
  EXPECT_FALSE(IsCommitUnknown(results.status())) << "it is known";
  Run("drop trigger wait_at_commit on stepwell.writers");
  EXPECT_EQ(Committed(writer), 0u);
  EXPECT_EQ(JournalRows(), 0);
}

TEST_F(PgStoreFaults, SaysThatACommitIsUnknownWhenNobodyCanBeAsked) {
  auto ingest =
      PgIngestStore::Open({.url = url_, .read_back_timeout = absl::Milliseconds(300)}, journal_);
  ASSERT_TRUE(ingest.ok()) << ingest.status();
  const OpenedWriter writer = OpenWriter("t");
  Run(R"(
create function wait_at_commit() returns trigger language plpgsql as
  $$ begin perform pg_sleep(60); return null; end $$;
create constraint trigger wait_at_commit after update on stepwell.writers
  deferrable initially deferred for each row execute function wait_at_commit())");
  const std::string name(sql_->Exec("select current_database()::text")->Text(0, 0));
  // Nobody gets in any more, and the one who is in is thrown out. From another database, since one
  // cannot lock oneself out.
  std::thread killer([&] {
    const auto sql = Connect(TestPostgres::Get().FreshDatabase());
    for (const absl::Time deadline = absl::Now() + absl::Seconds(20); absl::Now() < deadline;) {
      const auto waiting = sql->Exec(
          "select pid from pg_stat_activity where query = 'commit' and wait_event = 'PgSleep' "
          "and datname = $1",
          {name});
      ASSERT_TRUE(waiting.ok()) << waiting.status();
      if (waiting->row_count() == 0) continue;
      const std::string close =
          absl::StrCat("alter database \"", name, "\" allow_connections false");
      ASSERT_TRUE(sql->ExecScript(close).ok());
      const auto killed =
          sql->Exec("select pg_terminate_backend($1, 5000)", {waiting->Int32(0, 0)});
      ASSERT_TRUE(killed.ok()) << killed.status();
      return;
    }
    ADD_FAILURE() << "no COMMIT waited";
  });
  const auto results = (*ingest)->Commit(Group({Advance(writer, 1)}));
  killer.join();
  EXPECT_TRUE(IsCommitUnknown(results.status())) << results.status();
}

TEST_F(PgStoreFaults, AFoldInDoubtIsReadBack) {
  const OpenedWriter writer = OpenWriter("t");
  SeriesDefinition definition;
  definition.key = {.metric_group = "gpu", .name = "util", .labels = {}};
  ASSERT_TRUE(ingest_->FindOrCreateSeries(writer.trial_id, {definition}, 10).ok());
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 1)})).ok());
  TickTable table;
  table.times_us = {kNowUs};
  table.batches = {1};
  table.columns = {{.series_no = SeriesNo{1}, .values = {5}, .presence = {}}};
  const std::vector<TickTable> tables = {table};
  WriterFold fold;
  fold.trial_id = writer.trial_id;
  fold.writer_no = writer.writer_no;
  fold.to_sequence = 1;
  fold.parts = {{.received_time_us = kNowUs, .tables = &tables}};
  Run(R"(
create function wait_at_commit() returns trigger language plpgsql as
  $$ begin perform pg_sleep(60); return null; end $$;
create constraint trigger wait_at_commit after update on stepwell.writers
  deferrable initially deferred for each row execute function wait_at_commit())");
  {
    std::thread killer(KillWhen, url_, "query = 'commit' and wait_event = 'PgSleep'");
    const auto folded = folds_->Fold(kEpoch, {fold});
    killer.join();
    EXPECT_EQ(folded.status().code(), absl::StatusCode::kUnavailable) << folded.status();
  }
  Run("drop trigger wait_at_commit on stepwell.writers");
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  const auto admin = Connect(url_);
  ASSERT_TRUE(admin->ExecScript("alter system set synchronous_standby_names = 'nobody'").ok());
  ASSERT_TRUE(admin->ExecScript("select pg_reload_conf()").ok());
  std::thread killer(KillWhen, url_, "wait_event = 'SyncRep'");
  const auto folded = folds_->Fold(kEpoch, {fold});
  killer.join();
  ASSERT_TRUE(admin->ExecScript("alter system reset synchronous_standby_names").ok());
  ASSERT_TRUE(admin->ExecScript("select pg_reload_conf()").ok());
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  EXPECT_EQ(Number("select fold_no from stepwell.recent"), Value(folded->fold_no));
}

// Two commit connections and a fold connection on the same writers, each with the writers in an
// order of its own: nobody may end in a deadlock.
TEST_F(PgStoreFaults, CommitsAndFoldsInAnyOrderNeverDeadlock) {
  constexpr int kWriters = 20;
  constexpr int kRounds = 60;
  std::vector<OpenedWriter> writers;
  for (int i = 0; i < kWriters; ++i) writers.push_back(OpenWriter(absl::StrCat("t", i % 5)));
  const auto second = PgIngestStore::Open({.url = url_}, journal_);
  ASSERT_TRUE(second.ok()) << second.status();
  const auto commit_rounds = [&](IngestStore& store, bool backwards) {
    std::vector<std::uint64_t> next(kWriters, 1);
    for (int round = 0; round < kRounds; ++round) {
      CommitGroupRequest group = Group({});
      for (int i = 0; i < kWriters; ++i) {
        const int at = backwards ? kWriters - 1 - i : i;
        group.advances.push_back(Advance(writers[at], next[at]));
      }
      const auto results = store.Commit(group);
      ASSERT_TRUE(results.ok()) << results.status();
      for (int i = 0; i < kWriters; ++i) {
        next[backwards ? kWriters - 1 - i : i] = results->at(i).committed_sequence + 1;
      }
    }
  };
  std::atomic<bool> stop = false;
  std::thread folder([&] {
    std::uint64_t folded = 0;
    while (!stop) {
      std::uint64_t least = ~std::uint64_t{0};
      for (const OpenedWriter& writer : writers) least = std::min(least, Committed(writer));
      if (least <= folded) continue;
      std::vector<WriterFold> folds;
      for (int i = kWriters - 1; i >= 0; --i) {
        WriterFold& fold = folds.emplace_back();
        fold.trial_id = writers[i].trial_id;
        fold.writer_no = writers[i].writer_no;
        fold.from_sequence_exclusive = folded;
        fold.to_sequence = least;
      }
      const auto result = folds_->Fold(kEpoch, folds);
      ASSERT_TRUE(result.ok()) << result.status();
      folded = least;
    }
  });
  std::thread backwards([&] { commit_rounds(**second, true); });
  commit_rounds(*ingest_, false);
  backwards.join();
  stop = true;
  folder.join();
  EXPECT_EQ(Number("select coalesce(max(deadlocks), 0) from pg_stat_database "
                   "where datname = current_database()"),
            0);
}

TEST_F(PgStoreFaults, ATakeOverWaitsForTheCommitUnderWay) {
  absl::Notification in_commit, go_on;
  at_point_ = [&](std::string_view point, int) {
    if (point != "commit_before_commit" || in_commit.HasBeenNotified()) return;
    in_commit.Notify();
    go_on.WaitForNotificationWithTimeout(absl::Seconds(20));
  };
  Reopen();
  const OpenedWriter writer = OpenWriter("t");
  std::thread commit([&] { EXPECT_TRUE(ingest_->Commit(Group({Advance(writer, 1)})).ok()); });
  in_commit.WaitForNotification();
  const auto next_owner = PgIngestStore::Open({.url = url_}, std::make_shared<JournalRing>());
  ASSERT_TRUE(next_owner.ok()) << next_owner.status();
  std::atomic<bool> fenced = false;
  std::thread fence([&] {
    EXPECT_TRUE((*next_owner)->FenceTrials(2).ok());
    fenced = true;
  });
  // The fence waits for a lock; it is not merely slow.
  while (Number("select count(*) from pg_locks where not granted") == 0) {
  }
  EXPECT_FALSE(fenced);
  go_on.Notify();
  commit.join();
  fence.join();
  // Whatever the former owner had committed is seen by the new one.
  EXPECT_EQ(Committed(writer), 1u);
  int rows = 0;
  ASSERT_TRUE((*next_owner)
                  ->ReadUnfoldedJournal([&](const JournalRow&) {
                    ++rows;
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(rows, 1);
  EXPECT_EQ(ingest_->Commit(Group({Advance(writer, 2)})).status().code(),
            absl::StatusCode::kAborted);
}

TEST_F(PgStoreFaults, AnOpenReaderDelaysNeitherLeavesNorCommits) {
  const OpenedWriter writer = OpenWriter("t");
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 1)})).ok());
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->Begin().ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.metrics").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.recent").ok());
  for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
    ASSERT_TRUE(
        reader->Exec(absl::StrCat("select count(*) from stepwell.journal_", i).c_str()).ok());
  }
  const absl::Time start = absl::Now();
  const absl::Status attached = folds_->AttachLeaves(kNowUs);
  EXPECT_TRUE(attached.ok()) << attached;
  EXPECT_EQ(Number("select count(*) from pg_inherits "
                   "where inhparent = 'stepwell.metrics'::regclass"),
            4);
  EXPECT_TRUE(folds_->AttachLeaves(kNowUs).ok());
  Run("update stepwell.writers set folded_sequence = committed_sequence");
  EXPECT_TRUE(folds_->RecycleJournal(INT64_MAX).ok());
  EXPECT_TRUE(folds_->RecycleRecent().ok());
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 2)})).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  ASSERT_TRUE(reader->Commit().ok());
}

TEST_F(PgStoreFaults, RecyclesTheJournalWhenAllIsFolded) {
  const OpenedWriter writer = OpenWriter("t");
  // Each commit is received more than a minute before now: the ring advances each time.
  std::uint64_t sequence = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, ++sequence)})).ok());
    ASSERT_TRUE(folds_->RecycleJournal(0).ok());
  }
  EXPECT_EQ(journal_->current(), 3);
  EXPECT_EQ(JournalRows(), 3);
  Run("update stepwell.writers set folded_sequence = 2");
  // A wrong mark of the caller's does no harm: the database knows what is folded.
  ASSERT_TRUE(folds_->RecycleJournal(INT64_MAX).ok());
  EXPECT_EQ(JournalRows(), 1);
  EXPECT_EQ(Number("select first_sequences[1] from stepwell.journal_2"), 3);
  // While somebody reads the segment it is skipped, and the ring goes round it.
  Run("update stepwell.writers set folded_sequence = 3");
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->Begin().ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.journal_2").ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, ++sequence)})).ok());
    Run("update stepwell.writers set folded_sequence = committed_sequence");
    ASSERT_TRUE(folds_->RecycleJournal(INT64_MAX).ok());
    EXPECT_NE(journal_->current(), 2);
  }
  ASSERT_TRUE(reader->Commit().ok());
  ASSERT_TRUE(folds_->RecycleJournal(INT64_MAX).ok());
  EXPECT_LE(JournalRows(), 1);
}

TEST_F(PgStoreFaults, AStartedStoreGoesOnInTheNewestSegment) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, i)})).ok());
    ASSERT_TRUE(folds_->RecycleJournal(0).ok());
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

class RecentRingTest : public PgStoreFaults {
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
  ASSERT_TRUE(folds_->RecycleRecent().ok());  // full: folds go to the next
  FoldOne("b", true);
  EXPECT_EQ(SegmentRows(1), 1);
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  MergeAll();
  MergeAll();
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2);
  ASSERT_TRUE(folds_->RecycleRecent().ok());
  EXPECT_GT(SegmentBytes(0), 0) << "the reader still sees its row";
  const auto seen = reader->Exec("select count(*) from stepwell.recent");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->Int64(0, 0), 2);
  ASSERT_TRUE(reader->Commit().ok());
  ASSERT_TRUE(folds_->RecycleRecent().ok());
  EXPECT_EQ(SegmentBytes(0), 0);
}

TEST_F(RecentRingTest, SkipsASegmentThatSomebodyHolds) {
  Reopen({.age_max_us = 0});
  FoldOne("a", true);
  ASSERT_TRUE(folds_->RecycleRecent().ok());
  MergeAll();
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->Begin().ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.recent_0").ok());  // keeps its lock
  const absl::Time start = absl::Now();
  ASSERT_TRUE(folds_->RecycleRecent().ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_GT(SegmentBytes(0), 0);
  ASSERT_TRUE(reader->Commit().ok());
  ASSERT_TRUE(folds_->RecycleRecent().ok());
  EXPECT_EQ(SegmentBytes(0), 0);
}

TEST_F(RecentRingTest, CarriesUnripeRowsIntoTheNewestSegment) {
  Reopen({.age_max_us = 0});
  for (int round = 0; round < 10; ++round) {
    FoldOne(absl::StrCat("open", round), false);  // never ripe
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(folds_->RecycleRecent().ok());
  }
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 10);
  EXPECT_EQ(Number("select count(*) from stepwell.recent_ticks"), 10);
  EXPECT_EQ(Number("select count(*) from stepwell.recent where fold_no <> tick_no / 65536"), 0);
}

TEST_F(RecentRingTest, GoesOnUnderASnapshotThatNeverEnds) {
  Reopen({.age_max_us = 0});
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  for (int round = 0; round < 10; ++round) {
    FoldOne(absl::StrCat("t", round), true);
    MergeAll();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(folds_->RecycleRecent().ok());
  }
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 10);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
}

TEST_F(RecentRingTest, AStartedStoreGoesOnInTheNewestSegment) {
  Reopen({.age_max_us = 0});
  FoldOne("a", false);
  ASSERT_TRUE(folds_->RecycleRecent().ok());
  FoldOne("b", false);
  Reopen();
  FoldOne("c", false);
  EXPECT_EQ(SegmentRows(0), 1);
  EXPECT_EQ(SegmentRows(1), 2);
}

}  // namespace
}  // namespace stepwell
