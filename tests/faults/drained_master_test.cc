// A master is told to end under load, as an upgrade and a reboot do: it acks and folds what it has taken, and is gone
// within ten seconds. The next one has nothing to replay, nobody misses anything.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kRounds = 3;
constexpr absl::Duration kDrainMax = absl::Seconds(10);
constexpr std::uint64_t kChunks = 60;

TEST(DrainedMasterTest, EndsWithinTenSecondsUnderLoadAndTheNextReplaysNothing) {
  Scene scene("drained master");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  for (const int rank : {10, 11}) {
    scene.StartRawWriter(rank, master.grpc_address(), {{"--rate", "100"}});
  }
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(scene.Await(absl::StrCat(kChunks, " chunks"), absl::Seconds(60),
                            [&] {
                              const auto status = client.Status();
                              return status && status->chunks_committed() >= kChunks;
                            }))
        << scene.Logs() << master.LogTail();
    const absl::Duration begin = scene.Elapsed();
    ASSERT_EQ(master.Stop(kDrainMax), "exit 0") << master.LogTail();
    scene.Say(absl::StrFormat("ended %.2f s after SIGTERM",
                              absl::ToDoubleSeconds(scene.Elapsed() - begin)));
    ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
    std::uint64_t replayed = 1;
    EXPECT_TRUE(Eventually(
        [&] {
          const auto status = client.Status();
          if (!status || status->role() != "owner") return false;
          replayed = status->samples_replayed();
          return true;
        },
        absl::Seconds(30)))
        << master.LogTail();
    EXPECT_EQ(replayed, 0U) << "what was acked was not folded\n" << master.LogTail();
  }
  scene.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
