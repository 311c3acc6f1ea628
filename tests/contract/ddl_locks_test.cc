// DDL at run time waits 20 ms for a lock and no longer, wherever it is asked for, so that whoever comes behind it is
// served although somebody holds the table: by what PostgreSQL says of each statement, and by the order in which
// things happen. Nothing here is timed; how long a lock is held is bench/beside's to measure.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/cleanup/cleanup.h"
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

class DdlLocks : public CapsStoreTest {
 protected:
  // From now on public.ddl has each command of DDL that was committed, with the lock_timeout that it ran under:
  // an event trigger tells all but TRUNCATE, of which the tables tell themselves.
  void WatchDdl() {
    Run(R"(
create table public.ddl (command text, lock_timeout text);
create function public.note_ddl() returns event_trigger language plpgsql as
$$ begin insert into public.ddl values (tg_tag, current_setting('lock_timeout')); end $$;
create function public.note_truncate() returns trigger language plpgsql as $$ begin
  insert into public.ddl values ('TRUNCATE ' || tg_table_name, current_setting('lock_timeout'));
  return null; end $$;)");
    WatchTruncates();
    Run("create event trigger note_ddl on ddl_command_start execute function public.note_ddl()");
  }
  // Of all tables that are there by now.
  void WatchTruncates() {
    Run(R"(
set client_min_messages = warning;
do $$ declare leaf regclass; begin
  for leaf in select oid from pg_class where relnamespace = 'stepwell'::regnamespace
              and relkind = 'r' loop
    execute format('drop trigger if exists note on %s', leaf);
    execute format('create trigger note before truncate on %s execute function '
                   'public.note_truncate()', leaf);
  end loop; end $$;)");
  }
  std::int64_t DdlOf(const std::string& pattern) {
    return Number(absl::StrCat("select count(*) from public.ddl where command ~ '", pattern, "'"));
  }
  void TurnRings() {
    ASSERT_TRUE(folds_->RecycleJournal(kEpoch, INT64_MAX).ok());
    ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  }
};

TEST_F(DdlLocks, EachCommandAtRunTimeHasItsLockTimeout) {
  Reopen({.age_max_us = 0});
  WatchDdl();
  SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = 2 * kDay});
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  for (std::int64_t day = 0; day < 4; ++day) {
    const std::int64_t now_us = kNowUs + day * kDayUs;
    ASSERT_TRUE(folds_->AttachLeaves(now_us).ok());
    FillAndMerge(writer, 2, 100, now_us);
    WatchTruncates();
    for (int i = 0; i < 3; ++i) TurnRings();
    SweepAll(now_us);
  }
  SweepAll(kNowUs + 10 * kDayUs);
  SweepAll(kNowUs + 40 * kDayUs);
  // What the test itself did.
  Run("delete from public.ddl where command in ('CREATE TRIGGER', 'DROP TRIGGER')");
  for (const char* command : {"^CREATE TABLE$", "^ALTER TABLE$", "^DROP TABLE$",
                              "^TRUNCATE journal_", "^TRUNCATE progress_", "^TRUNCATE recent_[0-9]",
                              "^TRUNCATE recent_ticks_", "^TRUNCATE recent_rollups_",
                              "^TRUNCATE metrics_k", "^TRUNCATE ticks_k", "^TRUNCATE rollups_k"}) {
    EXPECT_GT(DdlOf(command), 0) << command << ": not seen, so nothing is known of it";
  }
  EXPECT_EQ(Text("select coalesce(string_agg(distinct command || ' under ' || lock_timeout, ', '), "
                 "'') from public.ddl where lock_timeout <> '20ms'"),
            "");
}

TEST_F(DdlLocks, WhoComesBehindOneThatWaitsIsServedWhileTheTableIsHeld) {
  SetCaps({}, {.raw_age_seconds = kDay});
  const OpenedWriter old = OpenWriter("old"), live = OpenWriter("live");
  AddSeries(old.trial_id, 2);
  ASSERT_TRUE(folds_->AttachLeaves(kNowUs).ok());
  FillAndMerge(old, 2, 100);
  // As an ANALYZE has the parents, and a reader in psql all that it has looked at.
  const std::vector<std::string> parents = {"metrics", "ticks", "rollups", "rollup_ticks"};
  std::vector<std::string> read = {"metrics", "ticks", "recent", "recent_ticks"};
  for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
    read.push_back(absl::StrCat("journal_", i));
    read.push_back(absl::StrCat("progress_", i));
  }
  const auto holder = Connect(url_);
  ASSERT_TRUE(holder->Begin().ok());
  for (const std::string& table : parents) {
    ASSERT_TRUE(holder
                    ->ExecScript(SqlOf(absl::StrCat("lock table stepwell.", table,
                                                    " in share update exclusive mode")))
                    .ok());
  }
  for (const std::string& table : read) {
    ASSERT_TRUE(holder->Exec(SqlOf(absl::StrCat("select count(*) from stepwell.", table))).ok());
  }
  const std::int64_t later_us = kNowUs + 5 * kDayUs;
  std::atomic<bool> stop = false;
  std::atomic<int> gave_up = 0, leaves_left = 0, turns = 0;
  std::thread ddl([&] {
    while (!stop) {
      const absl::Status attached = folds_->AttachLeaves(later_us);
      EXPECT_TRUE(absl::IsUnavailable(attached)) << attached;
      if (absl::IsUnavailable(attached)) ++gave_up;
      TurnRings();
      const auto swept = caps_.Sweep(kEpoch, {.now_us = later_us}, kAllProjects);
      EXPECT_TRUE(swept.ok()) << swept.status();
      if (swept.ok()) leaves_left += static_cast<int>(swept->leaves_left);
      ++turns;
    }
  });
  {
    const absl::Cleanup join = [&] {
      stop = true;
      ddl.join();
    };
    // Behind a lock that waits without end each of these would wait for the holder.
    const auto reader = Connect(url_);
    ASSERT_TRUE(reader->ExecScript("set statement_timeout = '20s'").ok());
    std::uint64_t sequence = 0;
    while (turns < 5 && !HasFailure()) {
      for (const std::string& table : read) {
        const auto rows =
            reader->Exec(SqlOf(absl::StrCat("select count(*) from stepwell.", table)));
        ASSERT_TRUE(rows.ok()) << table << ": " << rows.status();
      }
      const auto results = ingest_->Commit(Group({Advance(live, ++sequence)}));
      ASSERT_TRUE(results.ok()) << results.status();
    }
  }
  EXPECT_GT(gave_up, 0);
  EXPECT_GT(leaves_left, 0);
  // And comes again.
  ASSERT_TRUE(holder->Commit().ok());
  EXPECT_TRUE(folds_->AttachLeaves(later_us).ok());
  EXPECT_EQ(SweepAll(later_us).leaves_left, 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  ExpectNothingVanished();
}

}  // namespace
}  // namespace stepwell
