// The database of a master under load refuses to be written, as one that is failed over to a standby does,
// and takes it again later. That is an outage, not bad data: nothing is rejected, lost or doubled.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

TEST(ReadOnlyTest, IsAnOutageAndNotBadData) {
  Scene scene("read-only database");
  auto& postgres = testing::TestPostgres::Get().Durable();
  const std::string url = postgres.FreshDatabase();
  const std::string elsewhere = postgres.FreshDatabase();
  MasterProcess master({scene.path(""), "master", url, {"--master-id", "one"}});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0, {{"--world-size", "1"}});
  scene.StartRawWriter(10, master.grpc_address());
  ASSERT_TRUE(scene.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= 20; }))
      << master.LogTail();

  const std::string name = DatabaseText(url, "select quote_ident(current_database())");
  // Sessions of before may write on: they are ended, as those of a server that is failed over are.
  const auto set = [&](const char* what) {
    DatabaseText(elsewhere, absl::StrCat("alter database ", name, what));
    DatabaseText(elsewhere,
                 absl::StrCat("select count(pg_terminate_backend(pid)) from pg_stat_activity where "
                              "quote_ident(datname) = '",
                              name, "'"));
  };
  set(" set default_transaction_read_only = on");
  ASSERT_TRUE(scene.Await("refused as read-only", absl::Seconds(60), [&] {
    return master.CountInLog("read-only transaction") > 0 && master.CountInLog("commit_failed") > 0;
  })) << master.LogTail();
  set(" reset default_transaction_read_only");
  const std::uint64_t before = committed();
  ASSERT_TRUE(scene.Await("20 chunks more", absl::Seconds(60), [&] {
    return committed() >= before + 20;
  })) << master.LogTail();
  scene.StopProducers(absl::Seconds(60));
  const auto status = client.Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->chunks_rejected(), 0U);
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
