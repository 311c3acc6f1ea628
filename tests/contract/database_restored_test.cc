// A database that was restored is given a new incarnation by the next owner's look, where PostgreSQL says that it lies
// elsewhere: by a base backup and a recovery to a point in time, by a dump, by a promotion. What changes nothing of
// that keeps its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/steady_time.h"
#include "storage/database_place.h"
#include "storage/migrator.h"
#include "storage/pg_incarnation.h"
#include "storage/pg_ingest_store.h"
#include "storage/private_postgres.h"
#include "storage/private_postgres_binaries.h"
#include "tests/support/child_process.h"
#include "tests/support/postgres.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

namespace fs = std::filesystem;
using testing::ChildProcess;
using testing::Connect;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScratchDirectory;
using testing::TestPostgres;
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string ReadAll(const std::string& path) {
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

TEST(DatabasePlaceTest, TellsWhatBothKnowAndDiffers) {
  const DatabasePlace here{7, 1, 100, 200};
  const struct {
    const char* name;
    DatabasePlace before;
    DatabasePlace now;
    const char* change;
    DatabasePlace known;
  } rows[] = {
      {"nothing new", here, here, "", here},
      {"nobody has looked yet", {}, here, "", here},
      {"not known any more", here, {0, 0, 100, 200}, "", here},
      {"known for the first time", {0, 0, 100, 200}, here, "", here},
      {"a promotion", here, {7, 2, 100, 200}, "timeline 1, now 2", {7, 2, 100, 200}},
      {"a dump",
       here,
       {7, 1, 101, 201},
       "database oid 100, now 101; table oid 200, now 201",
       {7, 1, 101, 201}},
      {"a dump, cluster not known",
       here,
       {0, 0, 100, 201},
       "table oid 200, now 201",
       {7, 1, 100, 201}},
      {"another cluster", here, {8, 1, 100, 200}, "system identifier 7, now 8", {8, 1, 100, 200}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(PlaceChange(row.before, row.now), row.change);
    EXPECT_EQ(KnownPlace(row.before, row.now), row.known);
  }
}

class DatabaseRestoredTest : public ::testing::Test {
 protected:
  static std::unique_ptr<PgIngestStore> OpenStore(const std::string& url) {
    auto store = PgIngestStore::Open({.url = url}, std::make_shared<JournalRing>());
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  // As a master that starts on `url`, once it may write there.
  static Uuid Own(const std::string& url) {
    const auto store = OpenStore(url);
    if (store == nullptr) return {};
    absl::StatusOr<Ownership> owner = absl::UnknownError("not asked");
    for (const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(60); !owner.ok();) {
      owner = store->AcquireOwnership({.master_id = "m", .address = "a:1"});
      if (deadline.HasPassed()) break;
    }
    EXPECT_TRUE(owner.ok()) << owner.status();
    if (!owner.ok()) return {};
    EXPECT_TRUE(owner->is_owner);
    const auto renewed = store->AcquireOwnership({"m", "a:1", owner->epoch, owner->epoch});
    EXPECT_TRUE(renewed.ok() && renewed->is_owner) << renewed.status();
    EXPECT_EQ(renewed->incarnation, owner->incarnation) << "it was given another one twice";
    EXPECT_EQ(*store->ReadIncarnation(), owner->incarnation);
    return owner->incarnation;
  }
  static std::string Text(const std::string& url, const std::string& sql) {
    const auto result = Connect(url)->Exec(SqlOf(sql));
    EXPECT_TRUE(result.ok()) << sql << ": " << result.status();
    return result.ok() && result->row_count() > 0 ? std::string(result->Text(0, 0)) : "";
  }
  static void Run(const std::string& url, const std::string& sql) {
    const absl::Status done = Connect(url)->ExecScript(SqlOf(sql));
    ASSERT_TRUE(done.ok()) << sql << ": " << done;
  }
  static std::unique_ptr<PrivatePostgres> Start(const std::string& directory, Settings settings) {
    settings.push_back({"max_connections", "20"});
    settings.push_back({"wal_level", "replica"});
    auto postgres =
        PrivatePostgres::Open({.directory = directory,
                               .shared_buffers_bytes = 16 << 20,
                               .durability = PrivatePostgres::Options::Durability::kForTests,
                               .settings = std::move(settings),
                               .ready_wait = absl::Minutes(3)});
    EXPECT_TRUE(postgres.ok()) << postgres.status();
    return postgres.ok() ? *std::move(postgres) : nullptr;
  }
  // For a server that runs as somebody else.
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_all | fs::perms::others_all);
  }
  // cp -a: owner, modes and times stay.
  static void CopyTree(const std::string& from, const std::string& to) {
    ChildProcess copy;
    copy.Start({"/bin/cp", "-a", from, to}, {}, "/dev/null");
    ASSERT_EQ(copy.Wait(absl::Seconds(60)), "exit 0");
  }
  // pg_dump | psql, without the roles of a cluster
  static void Restore(const std::string& from, const std::string& to) {
    const auto binaries = FindPostgresBinaries("", 0);
    ASSERT_TRUE(binaries.ok()) << binaries.status();
    const std::string folder = fs::path(binaries->postgres).parent_path();
    const ScratchDirectory scratch;
    ChildProcess restore;
    restore.Start({"/bin/bash", "-c",
                   absl::StrCat("set -o pipefail; '", folder, "/pg_dump' -Ox '", from, "' | '",
                                folder, "/psql' -qX -v ON_ERROR_STOP=1 '", to, "'")},
                  {}, scratch / "log");
    ASSERT_EQ(restore.Wait(absl::Seconds(60)), "exit 0") << ReadAll(scratch / "log");
  }

  const ScratchDirectory scratch_;
};

TEST_F(DatabaseRestoredTest, ARecoveryToAPointInTimeIsAnotherDatabase) {
  const auto first = Start(scratch_ / "first", {});
  ASSERT_TRUE(Migrate(*Connect(first->url()), EmbeddedMigrations()).ok());
  const Uuid incarnation = Own(first->url());
  const std::string pg = first->data_directory();
  fs::create_directory(scratch_ / "second");
  {
    const auto backup = Connect(first->url());
    ASSERT_TRUE(backup->Exec("select pg_backup_start('test', true)").ok());
    CopyTree(pg, scratch_ / "second/pg");
    const auto stopped = backup->Exec("select labelfile from pg_backup_stop(false)");
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    Write(scratch_ / "second/pg/backup_label", std::string(stopped->Text(0, 0)));
  }
  Run(first->url(), "insert into stepwell.projects (name) values ('before')");
  Run(first->url(), "select pg_create_restore_point('then')");
  Run(first->url(), "insert into stepwell.projects (name) values ('after')");
  Run(first->url(), "select pg_switch_wal()");

  fs::remove(scratch_ / "second/pg/postmaster.pid");
  Write(scratch_ / "second/pg/recovery.signal", "");
  const auto second =
      Start(scratch_ / "second", {{"restore_command", absl::StrCat("cp ", pg, "/pg_wal/%f %p")},
                                  {"recovery_target_name", "then"},
                                  {"recovery_target_action", "promote"}});
  ::testing::internal::CaptureStderr();
  const Uuid recovered = Own(second->url());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("database_is_another"), HasSubstr("timeline 1, now 2")));
  EXPECT_EQ(Text(second->url(),
                 "select string_agg(name, ',') from stepwell.projects "
                 "where name in ('before', 'after')"),
            "before")
      << "it was recovered to that point";
  EXPECT_NE(recovered, incarnation);
  EXPECT_EQ(Own(second->url()), recovered) << "a start of the master";
  EXPECT_EQ(Own(first->url()), incarnation) << "that one lies where it lay";
}

TEST_F(DatabaseRestoredTest, ADumpThatIsPutBackIsAnotherDatabase) {
  const std::string url = TestPostgres::Get().FreshMigratedDatabase();
  const Uuid incarnation = Own(url);
  EXPECT_EQ(Own(url), incarnation);

  const std::string beside = TestPostgres::Get().FreshDatabase();
  Restore(url, beside);
  ASSERT_EQ(Text(beside, "select incarnation::text from stepwell.database"), incarnation.ToText());
  const Uuid in_the_same_cluster = Own(beside);
  EXPECT_NE(in_the_same_cluster, incarnation);
  EXPECT_EQ(Own(beside), in_the_same_cluster);

  const auto another = Start(scratch_ / "another", {});
  Restore(url, another->url());
  ::testing::internal::CaptureStderr();
  const Uuid elsewhere = Own(another->url());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("system identifier "));
  EXPECT_NE(elsewhere, incarnation);
  EXPECT_EQ(Own(another->url()), elsewhere);

  // As pg_restore --clean: the same database, and all in it made anew.
  Run(url, "drop schema stepwell cascade");
  Restore(another->url(), url);
  EXPECT_NE(Own(url), elsewhere);
}

TEST_F(DatabaseRestoredTest, AStartOfTheSamePostgresIsNot) {
  auto postgres = Start(scratch_ / "one", {});
  ASSERT_TRUE(Migrate(*Connect(postgres->url()), EmbeddedMigrations()).ok());
  const Uuid incarnation = Own(postgres->url());
  postgres.reset();
  postgres = Start(scratch_ / "one", {});
  EXPECT_EQ(Own(postgres->url()), incarnation);
}

// A master's claim, again and again as its loop makes it.
struct Master {
  PgIngestStore& store;
  std::int64_t epoch = 0;
  std::int64_t last_epoch = 0;

  absl::StatusOr<Ownership> Claim() {
    auto owner = store.AcquireOwnership({"m", "a:1", epoch, last_epoch});
    if (owner.ok() && owner->is_owner) last_epoch = owner->epoch;
    return owner;
  }
};

// Long enough for a statement's limit: as where a disk hangs right after a promotion.
TEST_F(DatabaseRestoredTest, ALookThatRanIntoItsLimitIsTakenAgain) {
  const std::string url = TestPostgres::Get().FreshMigratedDatabase();
  const auto store = OpenStore(url);
  Master master{*store};
  const auto first = master.Claim();
  ASSERT_TRUE(first.ok() && first->look.ok()) << first.status();
  master.epoch = first->epoch;
  ::testing::internal::CaptureStderr();
  {
    const auto holder = Connect(url);
    ASSERT_TRUE(holder->Begin().ok());
    ASSERT_TRUE(holder->ExecScript("lock table stepwell.database in access exclusive mode").ok());
    const auto hung = master.Claim();
    ASSERT_TRUE(hung.ok()) << hung.status();
    EXPECT_TRUE(hung->is_owner);
    EXPECT_EQ(hung->epoch, first->epoch);
    // The statement's limit or the connection's, whichever is sooner.
    EXPECT_FALSE(hung->look.ok());
  }
  Run(url, "update stepwell.database set timeline = 9");
  const auto second = master.Claim();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("database_place_unknown")));
  ASSERT_TRUE(second.ok() && second->look.ok()) << second.status();
  EXPECT_NE(second->incarnation, first->incarnation);
}

TEST_F(DatabaseRestoredTest, AnEpochThatWasTakenIsToldThoughTheLookFailed) {
  const std::string url = TestPostgres::Get().FreshMigratedDatabase();
  const auto store = OpenStore(url);
  Master master{*store};
  ASSERT_TRUE(master.Claim().ok());
  {
    const auto holder = Connect(url);
    ASSERT_TRUE(holder->Begin().ok());
    ASSERT_TRUE(holder->ExecScript("lock table stepwell.database in access exclusive mode").ok());
    const auto hung = master.Claim();
    ASSERT_TRUE(hung.ok()) << hung.status();
    EXPECT_EQ(hung->epoch, 2);
    EXPECT_FALSE(hung->look.ok());
  }
  const auto again = master.Claim();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->is_owner) << "nobody else may take it for ten seconds";
  EXPECT_EQ(again->epoch, 3);
}

TEST_F(DatabaseRestoredTest, AnEpochIsUsedOnceThoughTheRowWentBack) {
  const std::string url = TestPostgres::Get().FreshMigratedDatabase();
  const auto store = OpenStore(url);
  Master master{*store};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(master.Claim().ok());
  ASSERT_EQ(master.last_epoch, 3);
  Run(url, "update stepwell.masters set epoch = 1, renewed_time = to_timestamp(0)");
  ASSERT_TRUE(master.Claim().ok());
  EXPECT_EQ(master.last_epoch, 4);
  Run(url, "delete from stepwell.masters");
  ASSERT_TRUE(master.Claim().ok());
  EXPECT_EQ(master.last_epoch, 5);
}

// As it was before 0019, in another table: the master that lives on knows where it lay.
constexpr char kSetBackBefore0019[] = R"(
alter table stepwell.database rename to before;
create table stepwell.database (like stepwell.before including all);
insert into stepwell.database select * from stepwell.before;
drop table stepwell.before;
alter table stepwell.database drop column system_identifier, drop column timeline,
                              drop column database_oid, drop column table_oid;
drop view stepwell.usage;
drop index stepwell.usage_lines_by_leaf;
alter table stepwell.usage_lines rename to usage;
alter index stepwell.usage_lines_pkey rename to usage_pkey;
alter table stepwell.usage drop column after_sweep;
alter table stepwell.swept_leaves drop column samples_through;
create index usage_by_leaf on stepwell.usage (keep_class, received_day);
delete from stepwell.migrations where number >= 19)";

TEST_F(DatabaseRestoredTest, ARecoveryToBeforeItsColumnsUnderALivingMasterIsMigratedAndNoticed) {
  const std::string url = TestPostgres::Get().FreshMigratedDatabase();
  const auto store = OpenStore(url);
  Master master{*store};
  const auto first = master.Claim();
  ASSERT_TRUE(first.ok()) << first.status();
  master.epoch = first->epoch;
  Run(url, kSetBackBefore0019);
  const auto second = master.Claim();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(second->is_owner && second->look.ok()) << second->look;
  EXPECT_NE(second->incarnation, first->incarnation);
  EXPECT_TRUE(PendingMigrations(*Connect(url), EmbeddedMigrations())->empty());
  EXPECT_EQ(Text(url, "select (table_oid = tableoid::bigint)::text from stepwell.database"),
            "true");
  const auto third = master.Claim();
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->incarnation, second->incarnation);
}

// One that may read and write rows, and nothing of the cluster.
class RestrictedRoleTest : public DatabaseRestoredTest {
 protected:
  RestrictedRoleTest() {
    const auto admin = Connect(url_);
    const auto hba = admin->Exec("show hba_file");
    hba_path_ = hba->Text(0, 0);
    kept_hba_ = ReadAll(hba_path_);
    std::ofstream(hba_path_) << "local all " << kRole << " trust\n" << kept_hba_;
    Run(url_,
        absl::StrCat("create role ", kRole, " login; grant usage on schema stepwell to ", kRole,
                     "; grant select, insert, update on all tables in schema stepwell to ", kRole,
                     "; select pg_reload_conf()"));
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
    while (!PgConnection::Open({.url = as_role_}).ok() && !deadline.HasPassed()) {
    }
  }
  ~RestrictedRoleTest() override {
    Run(url_,
        absl::StrCat("grant execute on function pg_control_system() to public; drop owned by ",
                     kRole, "; drop role ", kRole));
    std::ofstream(hba_path_) << kept_hba_;
    Run(url_, "select pg_reload_conf()");
  }

  static constexpr char kRole[] = "restored_test_role";
  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::string as_role_ =
      absl::StrReplaceAll(url_, {{"//stepwell@", absl::StrCat("//", kRole, "@")}});
  std::string hba_path_;
  std::string kept_hba_;
};

TEST_F(RestrictedRoleTest, ARoleWithoutMoreThanRowsMayAskForAllOfIt) {
  ::testing::internal::CaptureStderr();
  Own(as_role_);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("database_place_unknown")));
  EXPECT_EQ(Text(url_,
                 "select (system_identifier = s.id and timeline = 1)::text from "
                 "stepwell.database, "
                 "(select system_identifier as id from pg_control_system()) s"),
            "true");
}

TEST_F(RestrictedRoleTest, WhereItMayNotAskTheLogSaysSoAndADumpIsSeenAllTheSame) {
  const Uuid incarnation = Own(as_role_);
  Run(url_, "revoke execute on function pg_control_system() from public");
  // Of another cluster and timeline, as far as it knows.
  Run(url_, "update stepwell.database set system_identifier = 1, timeline = 9");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Own(as_role_), incarnation) << "nobody knows that it is another one";
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("database_place_unknown"), HasSubstr("pg_control_system")));
  EXPECT_EQ(log.find("database_place_unknown"), log.rfind("database_place_unknown")) << log;
  EXPECT_EQ(Text(url_, "select timeline::text from stepwell.database"), "9")
      << "what was known stays";
  Run(url_, "update stepwell.database set table_oid = 1");
  EXPECT_NE(Own(as_role_), incarnation);
}

TEST_F(RestrictedRoleTest, WhereItMayNotNoteItTheLogSaysSo) {
  const Uuid incarnation = Own(as_role_);
  Run(url_, absl::StrCat("revoke update on stepwell.database from ", kRole,
                         "; update stepwell.database set timeline = 9"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Own(as_role_), incarnation);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("database_place_unknown"), HasSubstr("noticed by clients alone")));
}

TEST_F(RestrictedRoleTest, WhereItMayNotMigrateABackupOfBeforeIsOwnedAndTheLogSaysSo) {
  const auto store = OpenStore(as_role_);
  Master master{*store};
  const auto first = master.Claim();
  ASSERT_TRUE(first.ok()) << first.status();
  master.epoch = first->epoch;
  Run(url_,
      absl::StrCat(kSetBackBefore0019, "; grant select, update on stepwell.database to ", kRole));
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    const auto owner = master.Claim();
    ASSERT_TRUE(owner.ok()) << owner.status();
    EXPECT_TRUE(owner->is_owner && owner->look.ok()) << owner->look;
    EXPECT_EQ(owner->incarnation, first->incarnation) << "nobody knows that it is another one";
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("database_place_unknown"));
  EXPECT_EQ(log.find("database_place_unknown"), log.rfind("database_place_unknown")) << log;
  // A person migrates it.
  ASSERT_TRUE(Migrate(*Connect(url_), EmbeddedMigrations()).ok());
  const auto noticed = master.Claim();
  ASSERT_TRUE(noticed.ok()) << noticed.status();
  EXPECT_NE(noticed->incarnation, first->incarnation);
}

TEST_F(DatabaseRestoredTest, AFencedOwnerRenewsNothing) {
  const std::string url = TestPostgres::Get().FreshMigratedDatabase();
  const Uuid incarnation = Own(url);
  Run(url, "update stepwell.database set timeline = 9");
  PgIncarnation look;
  const auto connection = Connect(url);
  EXPECT_EQ(look.Look(*connection, 7).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Text(url, "select incarnation::text from stepwell.database"), incarnation.ToText());
  const auto owned = look.Look(*connection, 1);
  ASSERT_TRUE(owned.ok()) << owned.status();
  EXPECT_NE(*owned, incarnation);
}

}  // namespace
}  // namespace stepwell
