// How long after a master that was away is back the first ack comes. Printed, and held to the two seconds that are
// promised of a master that was away for less than twenty (client/agent/reconnect_delay.h).
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kKills = 4;
// Long enough for waits that double to reach their longest.
constexpr absl::Duration kAway = absl::Seconds(6);
constexpr absl::Duration kPromised = absl::Seconds(2);

TEST(FirstAckTest, ComesWithinTwoSecondsOfAMasterThatWasKilled) {
  Scene scene("first ack");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto commits = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  absl::Duration longest = absl::ZeroDuration();
  for (int i = 0; i < kKills; ++i) {
    ASSERT_TRUE(scene.Await("10 chunks", absl::Seconds(60), [&] { return commits() >= 10; }))
        << scene.Logs() << master.LogTail();
    master.Kill();
    const absl::Duration due = scene.Elapsed() + kAway;
    ASSERT_TRUE(Eventually([&] { return scene.Elapsed() >= due; }, absl::Seconds(60)));
    const absl::Duration begin = scene.Elapsed();
    ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
    const absl::Duration back = scene.Elapsed();
    // A commit of this life: each is acked within milliseconds.
    ASSERT_TRUE(Eventually([&] { return commits() > 0; }, absl::Seconds(60))) << scene.Logs();
    const absl::Duration took = scene.Elapsed() - back;
    longest = std::max(longest, took);
    scene.Say(absl::StrFormat("ready after %.2f s, first commit %.2f s later",
                              absl::ToDoubleSeconds(back - begin), absl::ToDoubleSeconds(took)));
  }
  EXPECT_LE(longest, kPromised);
  scene.StopProducers(absl::Seconds(60));
  EXPECT_EQ(scene.ExpectExact(master, Demand::kRecorded).declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
