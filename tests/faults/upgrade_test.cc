// Two builds: masters, agents and trainers of an older commit, which knows an older schema, beside those that were
// built with this test. Whoever goes first, the others live on. The older ones lie in the folder that
// STEPWELL_OLDER_PROGRAMS names (tests/older_programs.sh builds them); without it nothing is tested.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "storage/migrator.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/bookkeeping_sql.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

// How many migrations the database has seen, 0 where it does not say.
int MigrationCount(const std::string& url) {
  int count = 0;
  (void)absl::SimpleAtoi(DatabaseText(url, "select count(*) from stepwell.migrations"), &count);
  return count;
}

// A line for each table of ours, with a digest of all that it holds. REQUIRES: no master runs on it.
std::string Contents(const std::string& url) {
  const std::string digests =
      DatabaseText(url,
                   "select string_agg(format('select %L as name, md5(string_agg(t::text, '' '' "
                   "order by t::text)) as digest "
                   "from stepwell.%I t', relname, relname), ' union all ') from pg_class "
                   "where relnamespace = 'stepwell'::regnamespace and relkind = 'r'");
  return DatabaseText(url,
                      absl::StrCat("select string_agg(name || ' ' || coalesce(digest, 'empty'), "
                                   "E'\n' order by name) from (",
                                   digests, ") tables"));
}

// What the backends of a master that was killed had begun is over.
bool HasNoBackends(const std::string& url) {
  return DatabaseText(url,
                      "select count(*) from pg_stat_activity where datname = current_database() "
                      "and pid <> pg_backend_pid() and backend_type = 'client backend'") == "0";
}

class LongUpgradeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("STEPWELL_OLDER_PROGRAMS");
    if (folder == nullptr) GTEST_SKIP() << "no older build: the part upgrade makes one";
    older_ = folder;
  }

  const std::string& older() const { return older_; }
  MasterProcess::Life OlderMaster() const { return {.program = older_ + "/stepwell"}; }

  // An older one on a database without a schema, or on one that it made.
  void StartOlder(MasterProcess& master) {
    ASSERT_TRUE(master.StartAndWait(OlderMaster())) << master.LogTail();
    const int count = MigrationCount(master.database_url());
    scene_.Say(absl::StrCat("an older master, which knows ", count, " migrations"));
    ASSERT_GT(count, 0);
    ASSERT_LT(count, static_cast<int>(EmbeddedMigrations().size()))
        << "the older build has this one's schema: STEPWELL_OLDER_COMMIT names another";
  }
  // One of this build over what an older one left: it migrates.
  void StartNewer(MasterProcess& master) {
    ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
    const int count = MigrationCount(master.database_url());
    scene_.Say(absl::StrCat("this build's master, after ", count, " migrations"));
    ASSERT_EQ(count, static_cast<int>(EmbeddedMigrations().size()));
  }

  void StartTrainer(int rank) {
    producers_.push_back(&scene_.StartTrainer(rank, {{"--world-size", "2"}}));
  }
  // Two trainers behind an agent, and beside them one that speaks the wire's contract itself.
  void StartClients(const MasterProcess& master) {
    scene_.StartAgent(master.grpc_address());
    StartTrainer(0);
    StartTrainer(1);
    producers_.push_back(&scene_.StartRawWriter(10, master.grpc_address()));
  }

  void AwaitStored(const MasterProcess& master, std::int64_t more) {
    MasterClient client(master.grpc_address());
    const auto stored = [&] {
      const auto trial = client.Trial("faults");
      return trial ? trial->trial().sample_count() : 0;
    };
    const std::int64_t before = stored();
    ASSERT_TRUE(scene_.Await(absl::StrCat(more, " samples more are stored"), absl::Seconds(60),
                             [&] { return stored() >= before + more; }))
        << scene_.Logs() << master.LogTail();
  }
  // While no master is there.
  void AwaitRecorded(std::size_t more) {
    const std::size_t before = scene_.ReadLedgers().samples.size();
    ASSERT_TRUE(scene_.Await(absl::StrCat(more, " samples more are recorded"), absl::Seconds(60),
                             [&] { return scene_.ReadLedgers().samples.size() >= before + more; }))
        << scene_.Logs();
  }

  // All clients have lived until now; all that they recorded is stored, once, and nothing is given up.
  void ExpectAllIsThere(MasterProcess& master) {
    EXPECT_TRUE(scene_.agent().running()) << scene_.Logs();
    for (ChildProcess* producer : producers_) EXPECT_TRUE(producer->running()) << scene_.Logs();
    scene_.StopProducers(absl::Seconds(60));
    const Verdict verdict = scene_.ExpectExact(master, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    const auto status = MasterClient(master.grpc_address()).Status();
    ASSERT_TRUE(status) << master.LogTail();
    EXPECT_EQ(status->chunks_rejected(), 0U);
  }

  // Half of what is there is folded, the rest lies in the journal, when the older master ends.
  void ReplaceUnderOlderClients(MasterProcess& master, bool is_killed) {
    scene_.set_programs(older());
    ASSERT_NO_FATAL_FAILURE(StartOlder(master));
    StartClients(master);
    ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 1500));
    EXPECT_EQ(MasterClient(master.grpc_address()).Flush(), "");
    ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 1500));
    if (is_killed) {
      master.Kill();
    } else {
      ASSERT_EQ(master.Stop(), "exit 0") << master.LogTail();
    }
    scene_.Say(is_killed ? "it is killed" : "it has ended");
    ASSERT_NO_FATAL_FAILURE(AwaitRecorded(1000));
    ASSERT_NO_FATAL_FAILURE(StartNewer(master));
    ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 2000));
    ExpectAllIsThere(master);
    EXPECT_EQ(
        DatabaseText(master.database_url(), testing::LedgerMismatchSql(/*between_merges=*/true)),
        "");
    EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};

 private:
  std::string older_;
  std::vector<ChildProcess*> producers_;
};

TEST_F(LongUpgradeTest, AMasterThatEndedIsReplacedUnderOlderClients) {
  MasterProcess master({.scratch = scene_.path("")});
  ReplaceUnderOlderClients(master, /*is_killed=*/false);
}

TEST_F(LongUpgradeTest, AMasterThatWasKilledIsReplacedUnderOlderClients) {
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess master({.scratch = scene_.path(""), .database_url = url});
  ReplaceUnderOlderClients(master, /*is_killed=*/true);
}

TEST_F(LongUpgradeTest, NewerClientsServeAnOlderMaster) {
  MasterProcess master({.scratch = scene_.path("")});
  ASSERT_NO_FATAL_FAILURE(StartOlder(master));
  StartClients(master);
  ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 1500));
  master.Kill();
  ASSERT_NO_FATAL_FAILURE(AwaitRecorded(1000));
  ASSERT_NO_FATAL_FAILURE(StartOlder(master));
  ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 2000));
  ExpectAllIsThere(master);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

// Trainers are what goes last: those of either build record behind an agent of the other, which takes over what
// lies in the spool.
TEST_F(LongUpgradeTest, TheAgentIsReplacedUnderTrainersOfBothBuilds) {
  MasterProcess master({.scratch = scene_.path("")});
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene_.set_programs(older());
  scene_.StartAgent(master.grpc_address());
  StartTrainer(0);
  scene_.set_programs("");
  StartTrainer(1);
  ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 1500));
  ASSERT_EQ(master.Stop(), "exit 0") << master.LogTail();
  ASSERT_NO_FATAL_FAILURE(AwaitRecorded(1000));
  scene_.agent().Kill();
  scene_.StartAgent(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 2000));
  ExpectAllIsThere(master);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

// Migrations only go forward. Clients wait until somebody has the newer master back.
TEST_F(LongUpgradeTest, AnOlderMasterRefusesWhatANewerOneMadeAndTouchesNothing) {
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess master({.scratch = scene_.path(""), .database_url = url});
  scene_.set_programs(older());
  ASSERT_NO_FATAL_FAILURE(StartOlder(master));
  StartClients(master);
  ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 1500));
  ASSERT_EQ(master.Stop(), "exit 0") << master.LogTail();
  ASSERT_NO_FATAL_FAILURE(StartNewer(master));
  ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 1500));
  // Not stopped: what is acked and not folded lies in the journal, too.
  master.Kill();

  ASSERT_TRUE(Eventually([&] { return HasNoBackends(url); }, absl::Seconds(30)));
  const std::string before = Contents(url);
  EXPECT_FALSE(master.StartAndWait(OlderMaster())) << master.LogTail();
  EXPECT_EQ(master.Ending(), "exit 78");
  EXPECT_GE(master.CountInLog("run the newer stepwell that made it"), 1) << master.LogTail();
  EXPECT_EQ(Contents(url), before);

  ASSERT_NO_FATAL_FAILURE(StartNewer(master));
  ASSERT_NO_FATAL_FAILURE(AwaitStored(master, 1500));
  ExpectAllIsThere(master);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
