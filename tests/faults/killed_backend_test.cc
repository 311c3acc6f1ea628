// One child after the other of a private PostgreSQL is killed by SIGKILL under load, backends and helpers, whichever:
// the postmaster ends all connections, recovers and takes new ones. The master lives on.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/faults/child_pids.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kKills = 8;

TEST(KilledBackendTest, EndsAllConnectionsAndNothingIsLostOrDoubled) {
  Scene scene("killed backend");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  const pid_t postmaster = master.PostmasterPid();
  ASSERT_GT(postmaster, 0);
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) {
    scene.StartTrainer(rank, {{"--world-size", "2"}, {"--rate", "100"}});
  }
  for (int i = 0; i < kKills; ++i) {
    const std::uint64_t before = committed();
    ASSERT_TRUE(
        scene.Await("5 chunks", absl::Seconds(60), [&] { return committed() >= before + 5; }))
        << scene.Logs() << master.LogTail();
    const std::vector<pid_t> children = ChildPids(postmaster);
    ASSERT_FALSE(children.empty());
    const pid_t victim =
        children[static_cast<std::size_t>(scene.Random(0, static_cast<int>(children.size()) - 1))];
    ASSERT_EQ(kill(victim, SIGKILL), 0);
    // All of them go, whoever it was.
    ASSERT_TRUE(scene.Await(absl::StrCat("all ", children.size(), " children gone"),
                            absl::Seconds(30),
                            [&] {
                              const std::vector<pid_t> now = ChildPids(postmaster);
                              return std::none_of(children.begin(), children.end(), [&](pid_t pid) {
                                return std::find(now.begin(), now.end(), pid) != now.end();
                              });
                            }))
        << master.LogTail();
    EXPECT_TRUE(master.running()) << master.LogTail();
  }
  scene.StopProducers(absl::Seconds(60));
  EXPECT_EQ(master.PostmasterPid(), postmaster) << "it recovers by itself\n" << master.LogTail();
  const auto status = client.Status();
  ASSERT_TRUE(status) << master.LogTail();
  EXPECT_EQ(status->chunks_rejected(), 0U);
  EXPECT_EQ(scene.ReadLedgers().dropped_count, 0U);
  EXPECT_EQ(scene.ExpectExact(master, Demand::kRecorded).declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
