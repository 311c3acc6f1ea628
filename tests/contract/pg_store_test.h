// PgStoreTest: an ingest store and a fold store on one fresh database, and what tests do behind their
// back. For the tests of faults and of rings.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "tests/support/postgres.h"

namespace stepwell::testing {

inline constexpr std::int64_t kEpoch = 1;
inline constexpr std::int64_t kNowUs = 20'000 * 86'400'000'000;

class PgStoreTest : public ::testing::Test {
 protected:
  PgStoreTest() { Reopen(); }

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
  // From now on a COMMIT is durable and then waits for a standby that there is not: whoever kills its
  // backend makes it a COMMIT in doubt that happened.
  void HangCommits() {
    Run("alter system set synchronous_standby_names = 'nobody'");
    Run("select pg_reload_conf()");
    // The reload is in force when the checkpointer has seen it: a commit that hangs shows that.
    std::thread killer(KillWhen, url_, "wait_event = 'SyncRep'");
    while (Connect(url_)->ExecScript("update stepwell.projects set name = name").ok()) {
    }
    killer.join();
  }
  void ReleaseCommits() {
    Run("alter system reset synchronous_standby_names");
    Run("select pg_reload_conf()");
  }
  // Waits until somebody of this database waits for a lock.
  void AwaitLockWait() {
    for (const absl::Time deadline = absl::Now() + absl::Seconds(20); absl::Now() < deadline;) {
      if (Number("select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
                 "and datname = current_database()") > 0) {
        return;
      }
    }
    ADD_FAILURE() << "nobody waits for a lock";
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

}  // namespace stepwell::testing
