// deploy/postgres/roles.sql on a real PostgreSQL: a master works as stepwell_app, which may not change what it is
// not given; who has stepwell_read reads what docs/schema.md calls public, and nothing else.
#include <gmock/gmock.h>

#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/str_replace.h"
#include "storage/pg_error.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/startup.h"
#include "tests/support/places/places.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kEvilFunction[] =
    "create function stepwell.evil(q text) returns void security definer language plpgsql as "
    "$$ begin execute q; end $$";

class RolesTest : public CommandsTest {
 protected:
  void SetUp() override {
    url_ = TestPostgres::Get().Durable().FreshDatabase();
    // The private server lets its own role in alone; here each may say who he is.
    const auto admin = Connect(url_);
    const auto hba = admin->Exec("show hba_file");
    ASSERT_TRUE(hba.ok());
    const std::string path(hba->Text(0, 0));
    const std::string kept = ReadAll(path);
    std::ofstream(path) << "local all stepwell_owner,stepwell_app,roles_test_reader trust\n"
                        << kept;
    ASSERT_TRUE(admin->ExecScript("select pg_reload_conf()").ok());
  }
  // Of the one database, by another role.
  std::string As(const std::string& role) const {
    return absl::StrReplaceAll(url_, {{"//stepwell@", "//" + role + "@"}});
  }
  void ApplyRoles() {
    const absl::Status applied =
        Connect(url_)->ExecScript(SqlOf(ReadAll(SourcePlace("deploy/postgres/roles.sql"))));
    ASSERT_TRUE(applied.ok()) << applied;
    // From here on they may log in, once the server has read its file again.
    ASSERT_TRUE(Eventually([&] { return PgConnection::Open({.url = As("stepwell_app")}).ok(); },
                           absl::Seconds(20)));
  }
  // Leaves no transaction behind.
  static absl::Status ApplyRolesAs(PgConnection& admin) {
    absl::Status applied =
        admin.ExecScript(SqlOf(ReadAll(SourcePlace("deploy/postgres/roles.sql"))));
    if (!applied.ok()) admin.ExecScript("rollback").IgnoreError();
    return applied;
  }
  static std::int64_t QueryAs(PgConnection& connection, const char* sql) {
    const auto counted = connection.Exec(SqlOf(sql));
    EXPECT_TRUE(counted.ok()) << counted.status();
    return counted.ok() ? counted->Int64(0, 0) : -1;
  }
  std::string MigrateAs(const std::string& role) {
    const std::string log = scratch_ / absl::StrCat("migrated-", ++command_count_);
    ChildProcess child;
    child.Start({BuiltProgram("stepwell"), "serve", "--migrate-only", "--database-url", As(role)},
                {}, log);
    const std::string ending = child.Wait(absl::Seconds(60));
    said_ = ReadAll(log);
    return ending;
  }
  void StartMasterAs(const std::string& role) {
    MasterProcess::Options options;
    options.scratch = scratch_.path();
    options.database_url = As(role);
    options.flags = {"--fold-interval", "100ms", "--sweep-interval", "1h"};
    master_ = std::make_unique<MasterProcess>(std::move(options));
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
    client_ = std::make_unique<IngestClient>(master_->grpc_address());
  }
  // "" where it may, else the SQLSTATE.
  static std::string May(PgConnection& connection, const std::string& sql) {
    const absl::Status status = connection.ExecScript(SqlOf("begin; " + sql + "; rollback"));
    if (!status.ok()) connection.ExecScript("rollback").IgnoreError();
    return SqlState(status);
  }
  static std::set<std::string> Names(PgConnection& connection, const char* sql) {
    const auto rows = connection.Exec(SqlOf(sql));
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::set<std::string> names;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      names.emplace(rows->Text(row, 0));
    }
    return names;
  }

  std::string url_;
  std::string said_;
};

// PostgreSQL's word for it.
constexpr char kRefused[] = "42501";

TEST_F(RolesTest, AMasterWorksByARoleThatMayNotChangeTheSchema) {
  ApplyRoles();
  EXPECT_EQ(MigrateAs("stepwell_app"), "exit 78") << said_;
  EXPECT_THAT(said_, HasSubstr("permission denied"));
  ASSERT_EQ(MigrateAs("stepwell_owner"), "exit 0") << said_;
  EXPECT_THAT(said_, HasSubstr("applied 0001_schema"));
  ApplyRoles();
  ApplyRoles();  // any number of times
  EXPECT_EQ(MigrateAs("stepwell_owner"), "exit 0");
  EXPECT_THAT(said_, HasSubstr("up to date"));

  // Ingest, folds, merges into leaves, a sweep, a deleted trial, queries.
  StartMasterAs("stepwell_app");
  Record("kept", 3000);
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  const std::int64_t trial_id = Open(stream, writer, "gone").trial_id();
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), 0.0);
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, start_us_, 1000, values))));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
  ASSERT_TRUE(stream.Send(CloseMessage(writer, 1)));
  EXPECT_TRUE(Eventually(
      [&] {
        return QueryNumber("select count(*) from stepwell.metrics where trial_id = $1", trial_id) >
               0;
      },
      absl::Seconds(60)))
      << master_->LogTail();
  ASSERT_TRUE(client_->Flush().ok()) << master_->LogTail();
  EXPECT_EQ(Samples(trial_id, "value").size(), 1000U);
  EXPECT_EQ(Command({"caps", "set", "--trial", "kept", "--samples", "1500", "--yes"}).ending,
            "exit 0");
  const Ran swept = Command({"caps", "sweep"});
  EXPECT_EQ(swept.ending, "exit 0") << swept.output << master_->LogTail();
  const Ran deleted = Command({"admin", "delete", "gone", "--yes"});
  EXPECT_EQ(deleted.ending, "exit 0") << deleted.output << master_->LogTail();
  EXPECT_EQ(Command({"report", "kept"}).ending, "exit 0") << master_->LogTail();
  EXPECT_EQ(Command({"trials"}).ending, "exit 0");
  // What it makes partitions of, and drops.
  const auto admin = Connect(url_);
  EXPECT_GE(
      QueryNumber(
          "select count(*) from pg_catalog.pg_class where relispartition and relkind = 'r' and "
          "pg_get_userbyid(relowner) = 'stepwell_app' and $1 > 0",
          1),
      12);
  for (const char* word :
       {"permission denied", "must be owner", "42501", "insufficient privilege"}) {
    EXPECT_EQ(master_->CountInLog(word), 0) << word << "\n" << master_->LogTail();
  }

  const auto app = Connect(As("stepwell_app"));
  // What the end of a day, of a ring and of an age cap take.
  for (const char* sql :
       {"create table stepwell.metrics_x (like stepwell.metrics including storage); "
        "alter table stepwell.metrics attach partition stepwell.metrics_x "
        "for values from (1, '2001-01-01') to (1, '2001-01-02'); "
        "analyze stepwell.metrics_x; drop table stepwell.metrics_x",
        "lock table stepwell.journal_7, stepwell.progress_7 in access exclusive mode; "
        "truncate stepwell.journal_7, stepwell.progress_7",
        "lock table stepwell.recent_3 in access exclusive mode; truncate stepwell.recent_3",
        "analyze stepwell.recent_rollups_0",
        "lock table stepwell.caps in share row exclusive mode"}) {
    EXPECT_EQ(May(*app, sql), "") << sql;
  }
  for (const char* sql :
       {"alter table stepwell.trials add column x int", "drop table stepwell.writers",
        "drop schema stepwell cascade", "create schema mine", "create table public.x (y int)",
        "create role x", "update stepwell.migrations set name = 'x'",
        "drop function stepwell.to_batches(bigint[])", "copy stepwell.trials to '/tmp/x'",
        "alter view stepwell.generic_metrics owner to stepwell_app",
        "copy stepwell.trials from program 'true'", "select pg_read_file('/etc/passwd')"}) {
    EXPECT_EQ(May(*app, sql), kRefused) << sql;
  }
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
}

// With the app's password somebody may make something, which the next run of roles.sql must not give the owner's rights, nor
// the next migration run with them.
TEST_F(RolesTest, WhatTheAppMadeDoesNotBecomeTheOwners) {
  ApplyRoles();
  ASSERT_EQ(MigrateAs("stepwell_owner"), "exit 0") << said_;
  ApplyRoles();
  const auto app = Connect(As("stepwell_app"));
  const auto admin = Connect(url_);
  struct Row {
    const char* made;
    const char* gone;
    const char* told;
  };
  const Row rows[] = {
      {kEvilFunction, "drop function stepwell.evil(text)", "stepwell_app made stepwell.evil(text)"},
      {"create view stepwell.evil as select 1", "drop view stepwell.evil",
       "stepwell_app made stepwell.evil"},
      {"create materialized view stepwell.evil as select 1", "drop materialized view stepwell.evil",
       "stepwell_app made stepwell.evil"},
      {"create table stepwell.evil (x int)", "drop table stepwell.evil",
       "stepwell_app made stepwell.evil"},
      {"create sequence stepwell.evil", "drop sequence stepwell.evil",
       "stepwell_app made stepwell.evil"},
      {"create table stepwell.evil (x int); create rule r as on insert to stepwell.evil do also "
       "insert into stepwell.migrations values (new.x)",
       "drop table stepwell.evil", "rule r on stepwell.evil: none is of Stepwell"},
      {"create trigger t before update on stepwell.metrics for each row execute function "
       "suppress_redundant_updates_trigger()",
       "drop trigger t on stepwell.metrics", "trigger t on stepwell.metrics: none is of Stepwell"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.made);
    const absl::Status made = app->ExecScript(SqlOf(row.made));
    ASSERT_TRUE(made.ok()) << made;
    EXPECT_THAT(std::string(ApplyRolesAs(*admin).message()), HasSubstr(row.told));
    const absl::Status gone = app->ExecScript(SqlOf(row.gone));
    ASSERT_TRUE(gone.ok()) << gone << ": it is the app's still";
  }
  ApplyRoles();
}

// Nor where it is made while roles.sql waits for a lock of the app's.
TEST_F(RolesTest, WhatTheAppMakesMeanwhileDoesNotBecomeTheOwners) {
  ApplyRoles();
  ASSERT_EQ(MigrateAs("stepwell_owner"), "exit 0") << said_;
  ApplyRoles();
  const auto holder = Connect(As("stepwell_app"));
  const auto maker = Connect(As("stepwell_app"));
  const auto admin = Connect(url_);
  ASSERT_TRUE(holder->ExecScript("begin; lock table stepwell.metrics").ok());
  absl::Status applied;
  std::thread applies([&] { applied = ApplyRolesAs(*admin); });
  EXPECT_TRUE(Eventually(
      [&] { return QueryAs(*maker, "select count(*) from pg_locks where not granted") > 0; },
      absl::Seconds(20)));
  EXPECT_TRUE(maker->ExecScript(SqlOf(kEvilFunction)).ok());
  ASSERT_TRUE(holder->ExecScript("rollback").ok());
  applies.join();
  if (applied.ok()) applied = ApplyRolesAs(*admin);  // it had not come to functions yet, or had
  EXPECT_THAT(std::string(applied.message()), HasSubstr("stepwell_app made stepwell.evil(text)"));
  EXPECT_TRUE(maker->ExecScript("drop function stepwell.evil(text)").ok()) << "the app's still";
}

TEST_F(RolesTest, AReaderReadsWhatIsPublicAndNothingElse) {
  ApplyRoles();
  ASSERT_EQ(MigrateAs("stepwell_owner"), "exit 0") << said_;
  ApplyRoles();
  StartMasterAs("stepwell_app");
  Record("seen", 300);
  ASSERT_TRUE(client_->Flush().ok());
  const auto admin = Connect(url_);
  ASSERT_TRUE(admin
                  ->ExecScript(
                      "drop role if exists roles_test_reader; create role roles_test_reader login; "
                      "grant stepwell_read to roles_test_reader")
                  .ok());
  const auto reader = Connect(As("roles_test_reader"));
  const auto read = reader->Exec(
      "select count(*) from stepwell.trials t, stepwell.samples(t.trial_id, 'test', 'value') s "
      "where t.external_id = 'seen'");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Int64(0, 0), 300);

  // docs/schema.md, "What is public", and the views that samples() reads.
  const std::set<std::string> is_public = {"generic_metrics",
                                           "decoded_rollups",
                                           "trials",
                                           "projects",
                                           "attempts",
                                           "series",
                                           "gaps",
                                           "usage",
                                           "caps",
                                           "keep_classes",
                                           "swept_leaves",
                                           "traces",
                                           "trace_parts",
                                           "trace_usage",
                                           "decoded_metrics",
                                           "decoded_recent",
                                           "encoded_metrics",
                                           "encoded_recent"};
  const auto all =
      Names(*admin,
            "select relname from pg_catalog.pg_class where relnamespace = 'stepwell'::regnamespace "
            "and relkind in ('r', 'p', 'v', 'm')");
  EXPECT_GT(all.size(), 60u);
  for (const std::string& name : all) {
    SCOPED_TRACE(name);
    const std::string table = "stepwell." + name;
    EXPECT_EQ(May(*reader, "select * from " + table + " limit 1"),
              is_public.contains(name) ? "" : kRefused);
    for (const char* change : {"insert into %s default values", "delete from %s", "truncate %s",
                               "lock table %s in share mode", "alter table %s rename to x"}) {
      EXPECT_NE(May(*reader, absl::StrReplaceAll(change, {{"%s", table}})), "") << change;
    }
  }
  for (const std::string& name : is_public) EXPECT_TRUE(all.contains(name)) << name;
  for (const char* sql :
       {"select nextval('stepwell.fold_numbers')", "create table stepwell.x (y int)",
        "create table public.x (y int)", "create temporary table x (y int)", "create schema x",
        "select pg_read_file('/etc/passwd')", "set role stepwell_app", "set role stepwell_owner",
        "copy stepwell.trials to program 'true'"}) {
    EXPECT_EQ(May(*reader, sql), kRefused) << sql;
  }
  // No right comes with being somebody.
  EXPECT_EQ(Names(*admin,
                  "select relname from pg_catalog.pg_class c, aclexplode(c.relacl) a "
                  "where relnamespace = 'stepwell'::regnamespace and a.grantee = 0")
                .size(),
            0u);
}

}  // namespace
}  // namespace stepwell::testing
