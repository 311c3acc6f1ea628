// PgIngestStore and PgFoldStore when backends die and outcomes are unknown.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "storage/pg_error.h"
#include "tests/contract/pg_store_test.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::kEpoch;
using testing::kNowUs;
using testing::PgStoreTest;
using testing::TestPostgres;

using PgStoreFaults = PgStoreTest;

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
  HangCommits();
  std::thread killer(KillWhen, url_, "wait_event = 'SyncRep'");
  WriterAdvance closes = Advance(other, 1);
  closes.last_sequence = 0;
  closes.payload.clear();
  closes.closing = WriterState::kClosed;
  const auto in_doubt = ingest_->Commit(Group({Advance(writer, 2), closes}));
  killer.join();
  ReleaseCommits();
  ASSERT_TRUE(in_doubt.ok()) << in_doubt.status();
  EXPECT_EQ(in_doubt->at(0).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(in_doubt->at(0).committed_sequence, 2u);
  EXPECT_EQ(in_doubt->at(1).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(ingest_->commits_in_doubt(), 1u) << "settled, and counted all the same";
  EXPECT_EQ(JournalRows(), 2);
}

// A deferred trigger makes COMMIT wait before the record is written.
TEST_F(PgStoreFaults, ReadsBackACommitThatDidNotHappen) {
  const OpenedWriter writer = OpenWriter("t");
  Run(R"(
create function wait_at_commit() returns trigger language plpgsql as
  $$ begin perform pg_sleep(60); return null; end $$;
create constraint trigger wait_at_commit after insert on stepwell.progress_0
  deferrable initially deferred for each row execute function wait_at_commit())");
  std::thread killer(KillWhen, url_, "query = 'commit' and wait_event = 'PgSleep'");
  const auto results = ingest_->Commit(Group({Advance(writer, 1)}));
  killer.join();
  EXPECT_EQ(results.status().code(), absl::StatusCode::kUnavailable) << results.status();
  EXPECT_FALSE(IsCommitUnknown(results.status())) << "it is known";
  Run("drop trigger wait_at_commit on stepwell.progress_0");
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
create constraint trigger wait_at_commit after insert on stepwell.progress_0
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
      ASSERT_TRUE(sql->ExecScript(SqlOf(close)).ok());
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

// The backend whose COMMIT is in doubt may still be at it when we ask.
TEST_F(PgStoreFaults, ReadingBackWaitsForABackendThatGoesOn) {
  const OpenedWriter writer = OpenWriter("t");
  const auto backend = Connect(url_);
  ASSERT_TRUE(backend->Begin().ok());
  ASSERT_TRUE(backend->Exec("select from stepwell.writers for no key update").ok());
  ASSERT_TRUE(backend
                  ->Exec("insert into stepwell.progress_5 select trial_id, 7, 0, writer_no "
                         "from stepwell.writers")
                  .ok());
  std::thread reader([&] { EXPECT_EQ(Committed(writer), 7u); });
  AwaitLockWait();
  ASSERT_TRUE(backend->Commit().ok());
  reader.join();
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
  HangCommits();
  std::thread killer(KillWhen, url_, "wait_event = 'SyncRep'");
  const auto folded = folds_->Fold(kEpoch, {fold});
  killer.join();
  ReleaseCommits();
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  EXPECT_EQ(Number("select fold_no from stepwell.recent"), Value(folded->fold_no));
  // One that goes into a leaf, too; where it is the leaf's making that nobody hears of, nothing is stored.
  ASSERT_TRUE(ingest_->Commit(Group({Advance(writer, 2)})).ok());
  fold.from_sequence_exclusive = 1;
  fold.to_sequence = 2;
  HangCommits();
  std::thread killer_of_leaf(KillWhen, url_, "wait_event = 'SyncRep'");
  const auto refused = folds_->FoldBulk(kEpoch, {fold}, 0);
  killer_of_leaf.join();
  ReleaseCommits();
  ASSERT_TRUE(refused.ok() && !*refused) << refused.status();
  Reopen();
  ASSERT_TRUE(folds_->AttachLeaves(kNowUs).ok());
  HangCommits();
  std::thread second_killer(KillWhen, url_, "wait_event = 'SyncRep'");
  const auto bulk = folds_->FoldBulk(kEpoch, {fold}, 0);
  second_killer.join();
  ReleaseCommits();
  ASSERT_TRUE(bulk.ok() && *bulk) << bulk.status();
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 1);
  EXPECT_EQ(Number("select tick_no / 65536 from stepwell.metrics"), Value((*bulk)->fold_no));
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
  AwaitLockWait();  // the fence waits for a lock; it is not merely slow
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

}  // namespace
}  // namespace stepwell
