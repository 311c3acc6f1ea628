// A master is stopped (SIGSTOP) for 5 s, a minute, ten minutes, and goes on as if nothing had been. Meanwhile
// agents spool and try it again, and its PostgreSQL lives.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

TEST(StoppedMasterTest, LongItGoesOnAfterSecondsAMinuteAndTenMinutes) {
  Scene scene("stopped master");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}, {"--rate", "20"}});
  scene.StartRawWriter(10, master.grpc_address());
  for (const int seconds : {5, 60, 600}) {
    const std::uint64_t before = committed();
    ASSERT_TRUE(
        scene.Await("20 chunks", absl::Seconds(120), [&] { return committed() >= before + 20; }))
        << scene.Logs() << master.LogTail();
    master.Pause();
    const absl::Duration end = scene.Elapsed() + absl::Seconds(seconds);
    const std::size_t recorded = scene.ReadLedgers().samples.size();
    scene.Await(absl::StrCat("stopped for ", seconds, " s"), absl::Seconds(seconds + 60),
                [&] { return scene.Elapsed() >= end; });
    EXPECT_GT(scene.ReadLedgers().samples.size(), recorded) << "the trainings stood still";
    master.Continue();
    const std::uint64_t after = committed();
    EXPECT_TRUE(scene.Await("20 chunks more", absl::Seconds(120),
                            [&] { return committed() >= after + 20; }))
        << scene.Logs() << master.LogTail();
  }
  scene.StopProducers(absl::Seconds(120));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
