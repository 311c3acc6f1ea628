#include "storage/migrator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::Connect;
using ::testing::HasSubstr;
using testing::TestPostgres;

const std::vector<Migration> kTwo = {
    {1, "first", "create table a (n int); insert into a values (1)"},
    {2, "second", "-- Why: more.\nalter table a add column m int; update a set m = 2"},
};
const std::span<const Migration> kOne(kTwo.data(), 1);

class MigratorTest : public ::testing::Test {
 protected:
  std::int64_t Count(const char* sql) {
    const auto result = connection_->Exec(SqlOf(sql));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->Int64(0, 0) : -1;
  }

  const std::string url_ = TestPostgres::Get().FreshDatabase();
  std::unique_ptr<PgConnection> connection_ = Connect(url_);
};

TEST_F(MigratorTest, AppliesInOrderAndRecordsTheHash) {
  const auto applied = Migrate(*connection_, kTwo);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->size(), 2u);
  EXPECT_EQ(Count("select m::int8 from a"), 2);
  const auto rows = connection_->Exec(
      "select number, name, sha256, applied_time <= now() from stepwell.migrations order by 1");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->row_count(), 2);
  EXPECT_EQ(rows->Text(1, 1), "second");
  EXPECT_EQ(rows->Text(1, 2), Sha256Hex(kTwo[1].sql.text()));
  EXPECT_TRUE(rows->Bool(1, 3));
}

TEST_F(MigratorTest, AppliesOnlyWhatIsNew) {
  ASSERT_TRUE(Migrate(*connection_, kOne).ok());
  const auto pending = PendingMigrations(*connection_, kTwo);
  ASSERT_TRUE(pending.ok()) << pending.status();
  ASSERT_EQ(pending->size(), 1u);
  EXPECT_EQ(pending->front().name, "second");
  EXPECT_EQ(Migrate(*connection_, kTwo)->size(), 1u);
  EXPECT_EQ(Migrate(*connection_, kTwo)->size(), 0u);
}

TEST_F(MigratorTest, ListingChangesNothing) {
  ASSERT_EQ(PendingMigrations(*connection_, kTwo)->size(), 2u);
  EXPECT_EQ(Count("select count(*) from pg_namespace where nspname = 'stepwell'"), 0);
}

// Both what a start (Migrate) and what a --dry-run (PendingMigrations) are told, word for word, and
// that neither changes anything.
TEST_F(MigratorTest, RefusesADatabaseOfANewerBinary) {
  ASSERT_TRUE(Migrate(*connection_, kTwo).ok());
  for (const absl::Status& refused :
       {Migrate(*connection_, kOne).status(), PendingMigrations(*connection_, kOne).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(
        refused.message(),
        "the database's schema is at migration 2, this binary knows 1; run the newer stepwell "
        "that made it, or restore a backup from before its upgrade (migrations only go "
        "forward)");
  }
  EXPECT_EQ(Count("select count(*) from stepwell.migrations"), 2);
}

TEST_F(MigratorTest, RefusesAChangedText) {
  ASSERT_TRUE(Migrate(*connection_, kOne).ok());
  std::vector<Migration> changed = kTwo;
  changed[0].sql = "create table a (n bigint)";
  for (const absl::Status& refused : {Migrate(*connection_, changed).status(),
                                      PendingMigrations(*connection_, changed).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(refused.message(),
              "migration 0001_first was applied to this database with another text than this "
              "binary carries; run the stepwell release that made the database, or a later one");
  }
  EXPECT_EQ(Count("select count(*) from stepwell.migrations"), 1) << "the second is not applied";
}

TEST_F(MigratorTest, AFailureLeavesTheOnesBeforeItAndNothingOfItself) {
  std::vector<Migration> broken = kTwo;
  broken[1].sql = "create table b (n int); select 1 / 0";
  const absl::Status failed = Migrate(*connection_, broken).status();
  EXPECT_EQ(SqlState(failed), "22012");
  EXPECT_THAT(std::string(failed.message()), HasSubstr("migration 0002_second: PostgreSQL 22012"));
  EXPECT_EQ(Count("select count(*) from stepwell.migrations"), 1);
  EXPECT_EQ(Count("select count(*) from pg_class where relname = 'b'"), 0);
  EXPECT_EQ(Migrate(*connection_, kTwo)->size(), 1u);
}

TEST_F(MigratorTest, EightStartingMastersApplyEachOnce) {
  std::atomic<int> applied_count = 0;
  std::vector<std::thread> masters;
  for (int i = 0; i < 8; ++i) {
    masters.emplace_back([&] {
      const auto applied = Migrate(*Connect(url_), kTwo);
      ASSERT_TRUE(applied.ok()) << applied.status();
      applied_count += static_cast<int>(applied->size());
    });
  }
  for (std::thread& master : masters) master.join();
  EXPECT_EQ(applied_count, 2);
  EXPECT_EQ(Count("select count(*) from a"), 1);
}

TEST_F(MigratorTest, AReaderWithoutRightsMayListAndIsToldWhenNothingIsLeft) {
  ASSERT_TRUE(Migrate(*connection_, kTwo).ok());
  ASSERT_TRUE(connection_
                  ->ExecScript("create role migrator_reader; "
                               "grant usage on schema stepwell to migrator_reader; "
                               "grant select on stepwell.migrations to migrator_reader; "
                               "set role migrator_reader")
                  .ok());
  EXPECT_EQ(Migrate(*connection_, kTwo)->size(), 0u);
}

TEST(EmbeddedMigrationsTest, ApplyToAnEmptyDatabase) {
  const auto connection = Connect(TestPostgres::Get().FreshMigratedDatabase());
  const auto rows = connection->Exec("select count(*) from stepwell.migrations");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Int64(0, 0), static_cast<std::int64_t>(EmbeddedMigrations().size()));
  EXPECT_GT(rows->Int64(0, 0), 0);
}

// Samples of one line were given up by a release before, those of the other are there.
TEST(EmbeddedMigrationsTest, TheLedgerSaysTheSameBehind0020) {
  const auto connection = Connect(TestPostgres::Get().FreshDatabase());
  ASSERT_TRUE(Migrate(*connection, EmbeddedMigrations().first(19)).ok());
  ASSERT_TRUE(connection
                  ->ExecScript(R"(
insert into stepwell.usage (trial_id, received_day, keep_class, metric_group, row_count, sample_count, byte_count,
  first_time_us, last_time_us, rollup_byte_count, has_rollups, removed_sample_count)
values (7, '2024-10-04', 1, 'gpu', 0, 0, 0, 1, 2, 30, true, 100), (8, '2024-10-05', 0, 'gpu', 1, 50, 60, 3, 4, 5, false, 6);
insert into stepwell.swept_leaves (keep_class, received_day, rollups_too, ledger_xid, emptied)
values (1, '2024-10-04', false, 3, true);
create table public.before as select * from stepwell.usage)")
                  .ok());
  ASSERT_TRUE(Migrate(*connection, EmbeddedMigrations()).ok());
  const auto differs = connection->Exec(
      "select count(*) from ((table public.before except table stepwell.usage) union all "
      "(table stepwell.usage except table public.before)) d");
  ASSERT_TRUE(differs.ok()) << differs.status();
  EXPECT_EQ(differs->Int64(0, 0), 0);
  EXPECT_EQ(connection->Exec("select count(*) from stepwell.usage")->Int64(0, 0), 2);
  const auto rights = connection->Exec(
      "select has_table_privilege('stepwell_read', 'stepwell.usage', 'select'), "
      "has_table_privilege('stepwell_read', 'stepwell.usage_lines', 'select')");
  ASSERT_TRUE(rights.ok()) << rights.status();
  EXPECT_TRUE(rights->Bool(0, 0));
  EXPECT_FALSE(rights->Bool(0, 1));
  // A master of before writes the table of that name.
  const auto taken = connection->Exec(
      "insert into stepwell.masters (slot, master_id, epoch, address, renewed_time, migration) "
      "values (0, 'old', 1, '', now(), 19)");
  EXPECT_EQ(SqlState(taken.status()), "23514") << "it takes nothing over";
}

}  // namespace
}  // namespace stepwell
