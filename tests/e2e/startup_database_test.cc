// What `stepwell serve` says, and how it exits, when its database is not as it must be.
#include <sys/stat.h>

#include <cstdlib>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "tests/e2e/startup.h"
#include "tests/support/postgres.h"

namespace stepwell::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class StartupDatabaseTest : public StartupTest {};

TEST_F(StartupDatabaseTest, BrokenDatabaseUrl) {
  EXPECT_EQ(Serve(Anywhere("--database-url=postgresql://u:secret@[::1")), "exit 78");
  EXPECT_EQ(said_,
            "stepwell serve: --database-url: database URL: end of string reached when looking for"
            " matching (a part) in IPv6 host address in URI: (a part); allowed:"
            " postgresql://USER@HOST:PORT/NAME?KEY=VALUE, or host=HOST dbname=NAME\n");
}

TEST_F(StartupDatabaseTest, BothDatabases) {
  const std::string strangers = scratch_ / "strangers";
  ASSERT_EQ(mkdir(strangers.c_str(), 0755), 0);
  std::ofstream(strangers + "/photo.jpeg") << "of somebody";
  for (const std::string& directory : {scratch_ / "nowhere", strangers}) {
    EXPECT_EQ(Serve({"--grpc-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0",
                     "--data-dir=" + directory, "--database-url=postgresql:///x"}),
              "exit 78");
    EXPECT_EQ(said_,
              "stepwell serve: --data-dir and --database-url exclude each other: the first is for a"
              " private PostgreSQL; leave one out\n");
  }
}

TEST_F(StartupDatabaseTest, DatabaseOrUserThatIsNotThere) {
  const std::string url = TestPostgres::Get().Durable().FreshDatabase();
  const std::string remedy =
      "; make the database (createdb) or mend user and password of --database-url ";
  const auto slash = url.find('/', url.find("://") + 3);
  const std::string name = url.substr(slash, url.find('?') - slash);
  const std::string elsewhere = absl::StrReplaceAll(url, {{name + "?", "/nowhere?"}});
  EXPECT_EQ(Serve(Anywhere("--database-url=" + elsewhere)), "exit 78");
  EXPECT_THAT(said_,
              EndsWith("FATAL:  database \"nowhere\" does not exist" + remedy + elsewhere + "\n"));
  const std::string who = absl::StrReplaceAll(url, {{"stepwell@", "nobody_here@"}});
  EXPECT_EQ(Serve(Anywhere("--database-url=" + who)), "exit 78");
  EXPECT_THAT(said_, EndsWith("FATAL:  Peer authentication failed for user \"nobody_here\"" +
                              remedy + who + "\n"));
}

TEST_F(StartupDatabaseTest, DatabaseThatDoesNotAnswerIsWaitedFor) {
  MasterProcess::Options options;
  options.scratch = scratch_.path();
  options.database_url = "postgresql://nobody:secret@127.0.0.1:1/none";
  MasterProcess master(options);
  master.Start({});
  const auto down = [&] { return absl::StrContains(master.Get("/readyz"), "database down"); };
  ASSERT_TRUE(Eventually(down, absl::Seconds(30))) << master.LogTail();
  const std::string answer = master.Get("/readyz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("\"reason\":\"database down: PostgreSQL connection: connection to"
                                " server failed: Connection refused"));
  EXPECT_THAT(answer, Not(HasSubstr("secret")));
  EXPECT_THAT(master.Get("/livez"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(master.Stop(), "exit 0") << "waiting ends when asked";
}

TEST_F(StartupDatabaseTest, NoPostgres) {
  const std::string nowhere = scratch_ / "nowhere";
  ASSERT_EQ(mkdir(nowhere.c_str(), 0755), 0);
  EXPECT_EQ(Serve({"--grpc-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0",
                   "--data-dir=" + (scratch_ / "data"), "--pg-bindir=" + nowhere}),
            "exit 78");
  EXPECT_EQ(said_, "stepwell serve: --pg-bindir: no working initdb and postgres in " + nowhere +
                       "; install one (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf"
                       " install postgresql-server), name its directory with --pg-bindir or"
                       " STEPWELL_PG_BINDIR, or use an existing server with --database-url\n");
}

TEST_F(StartupDatabaseTest, NoPostgresOnTheMachine) {
  if (std::system("unshare -m true 2>/dev/null") != 0) {
    GTEST_SKIP() << "no mount namespace of its own is permitted here";
  }
  prefix_ = {"/usr/bin/unshare",
             "-m",
             "/bin/sh",
             "-c",
             "mount -t tmpfs none /usr/lib/postgresql && exec \"$@\"",
             "sh"};
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + (scratch_ / "data"))), "exit 78");
  EXPECT_EQ(
      said_,
      "stepwell serve: no PostgreSQL server of version 15 or later found; install one (Debian,"
      " Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server), name its"
      " directory with --pg-bindir or STEPWELL_PG_BINDIR, or use an existing server with"
      " --database-url\n");
}

TEST_F(StartupDatabaseTest, DataOfAnotherPostgres) {
  const std::string data = scratch_ / "data";
  ASSERT_EQ(mkdir(data.c_str(), 0755), 0);
  ASSERT_EQ(mkdir((data + "/pg").c_str(), 0755), 0);
  std::ofstream(data + "/pg/PG_VERSION") << "9\n";
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + data)), "exit 78");
  std::smatch version;
  ASSERT_TRUE(std::regex_search(said_, version, std::regex("found is version ([0-9]+)"))) << said_;
  const std::string now = version[1];
  const std::string pg = data + "/pg";
  EXPECT_EQ(said_, "stepwell serve: " + pg +
                       " was made by PostgreSQL 9, the server found is version " + now +
                       ". Install version 9 beside it (Debian: apt-get install postgresql-9) and it"
                       " is used; or move to version " +
                       now + ": dump with the old one (pg_dumpall), move " + pg +
                       " away, restore into the new; or run pg_upgrade --old-datadir=" + pg + "\n");
}

TEST_F(StartupDatabaseTest, ASchemaThatThisBinaryDoesNotKnow) {
  const std::string url = TestPostgres::Get().Durable().FreshMigratedDatabase();
  const auto connection = Connect(url);
  const auto newest = connection->Exec("select max(number) from stepwell.migrations");
  ASSERT_TRUE(newest.ok());
  const int known = newest->Int32(0, 0);

  ASSERT_TRUE(connection
                  ->Exec("update stepwell.migrations set sha256 = repeat('0', 64)"
                         " where number = 1")
                  .ok());
  EXPECT_EQ(Serve(Anywhere("--database-url=" + url)), "exit 78");
  EXPECT_EQ(said_,
            "stepwell serve: migration 0001_schema was applied to this database with another text"
            " than this binary carries; run the stepwell release that made the database, or a later"
            " one\n");

  ASSERT_TRUE(connection
                  ->Exec("update stepwell.migrations set number = 999 where number ="
                         " (select max(number) from stepwell.migrations)")
                  .ok());
  EXPECT_EQ(Serve(Anywhere("--database-url=" + url)), "exit 78");
  EXPECT_EQ(said_, absl::StrCat("stepwell serve: the database's schema is at migration 999, this"
                                " binary knows ",
                                known,
                                "; run the newer stepwell that made it, or restore a backup from"
                                " before its upgrade (migrations only go forward)\n"));
}

TEST_F(StartupDatabaseTest, DryRunListsAndChangesNothing) {
  const std::string url = TestPostgres::Get().Durable().FreshDatabase();
  EXPECT_EQ(Serve({"--dry-run", "--database-url=" + url}), "exit 0");
  EXPECT_THAT(said_, StartsWith("pending 0001_schema\npending 0002_"));
  const std::string all = said_;
  const auto connection = Connect(url);
  const auto schemas =
      connection->Exec("select count(*) from pg_namespace where nspname = 'stepwell'");
  ASSERT_TRUE(schemas.ok());
  EXPECT_EQ(schemas->Int64(0, 0), 0);

  EXPECT_EQ(Serve({"--dry-run",
                   "--database-url=" + TestPostgres::Get().Durable().FreshMigratedDatabase()}),
            "exit 0");
  EXPECT_EQ(said_, "the schema is up to date\n");

  // Where there is nothing yet, all would be applied, and there is nothing afterwards.
  EXPECT_EQ(Serve({"--dry-run", "--data-dir=" + (scratch_ / "data")}), "exit 0");
  EXPECT_EQ(said_, all);
  EXPECT_NE(access((scratch_ / "data").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace stepwell::testing
