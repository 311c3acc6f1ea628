// Two masters on one database. The first is stopped until the second has taken over, and then goes
// on as if nothing had been: it must not write another row, ack another chunk, or take the database
// back.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

bool IsReady(const MasterProcess& master) {
  return absl::StartsWith(master.Get("/readyz"), "HTTP/1.1 200");
}

bool IsStandby(const MasterProcess& master) {
  const std::string answer = master.Get("/readyz");
  return absl::StartsWith(answer, "HTTP/1.1 503") && absl::StrContains(answer, "standby");
}

TEST(TakeoverTest, AStoppedMasterThatGoesOnLosesAndDoublesNothing) {
  Scene scene("takeover");
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess first({scene.path(""), "first", url, {"--master-id", "first"}});
  MasterProcess second({scene.path(""), "second", url, {"--master-id", "second"}});
  MasterClient first_client(first.grpc_address());
  MasterClient second_client(second.grpc_address());
  const auto committed = [](MasterClient& client) {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(first.StartAndWait()) << first.LogTail();
  second.Start({});
  ASSERT_TRUE(scene.Await("the second stands by", absl::Seconds(30), [&] {
    return IsStandby(second);
  })) << second.LogTail();

  scene.StartAgent(first.grpc_address());
  scene.StartTrainer(0, {{"--world-size", "2"}});
  scene.StartTrainer(1, {{"--world-size", "2"}});
  const std::string both = first.grpc_address() + "," + second.grpc_address();
  scene.StartRawWriter(10, both, {{"--rate", "100"}});
  scene.StartRawWriter(11, both, {{"--rate", "100"}});
  // This one stays with the first master until that one says no.
  scene.StartRawWriter(12, both, {{"--rate", "100"}, {"--ack-patience-ms", "40000"}});
  ASSERT_TRUE(scene.Await("200 chunks at the first", absl::Seconds(30), [&] {
    return committed(first_client) >= 200;
  })) << scene.Logs();

  first.Pause();
  scene.Say("the first is stopped");
  scene.agent().Kill();
  scene.StartAgent(second.grpc_address());
  ASSERT_TRUE(scene.Await("the second took over", absl::Seconds(30), [&] {
    return IsReady(second);
  })) << second.LogTail();
  ASSERT_TRUE(second.WaitReady());
  ASSERT_TRUE(scene.Await("200 chunks at the second", absl::Seconds(30),
                          [&] { return committed(second_client) >= 200; }))
      << scene.Logs() << second.LogTail();

  first.Continue();
  scene.Say("the first goes on");
  EXPECT_TRUE(
      scene.Await("the first stands by", absl::Seconds(30), [&] { return IsStandby(first); }))
      << first.LogTail() << first.Get("/readyz");
  EXPECT_TRUE(IsReady(second));
  const std::uint64_t before = committed(second_client);
  EXPECT_TRUE(scene.Await("200 chunks more at the second", absl::Seconds(30), [&] {
    return committed(second_client) >= before + 200;
  })) << second.LogTail();
  scene.StopProducers(absl::Seconds(60));

  const auto first_status = first_client.Status();
  const auto second_status = second_client.Status();
  ASSERT_TRUE(first_status && second_status);
  EXPECT_EQ(first_status->role(), "standby");
  EXPECT_EQ(second_status->role(), "owner");
  EXPECT_EQ(second_status->epoch(), 2);
  EXPECT_EQ(second_status->chunks_rejected(), 0U);
  scene.Say(absl::StrCat("the second replayed ", second_status->samples_replayed(),
                         " samples and was sent ", second_status->chunks_repeated(),
                         " chunks again"));
  const Verdict verdict = scene.ExpectExact(second, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(first.Stop(), "exit 0") << first.LogTail();
  EXPECT_EQ(second.Stop(), "exit 0") << second.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
