// The kernel's killer takes the master, the agent and a trial, each in a memory cgroup that somebody
// else fills up.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/faults/small_memory.h"

namespace stepwell::faults {
namespace {

TEST(OutOfMemoryTest, AMasterAnAgentAndATrialThatAreKilledForItLoseAndDoubleNothing) {
  Scene scene("out of memory");
  SmallMemory memory("oom", 32 << 20);
  if (!memory.trouble().empty()) GTEST_SKIP() << memory.trouble();
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  const auto kill_child = [&](ChildProcess& child) {
    return memory.Kill(
        child.pid(), [&] { return !child.running(); }, scene.path("hog.log"));
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0, {{"--world-size", "2"}});
  ChildProcess& second =
      scene.StartTrainer(1, {{"--world-size", "2"}, {"--scopes", "0"}, {"--log-ahead", "1"}});
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(scene.Await("10 chunks", absl::Seconds(60), [&] { return committed() >= 10; }))
        << scene.Logs() << master.LogTail();
    ASSERT_EQ(memory.Kill(
                  master.pid(), [&] { return !master.running(); }, scene.path("hog.log")),
              "");
    EXPECT_EQ(master.Ending(), "killed by signal 9");
    scene.Say(absl::StrCat("the master was killed, ", memory.kill_count(), " kills so far"));
    ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
    ASSERT_EQ(kill_child(scene.agent()), "");
    EXPECT_EQ(scene.agent().Wait(absl::ZeroDuration()), "killed by signal 9");
    scene.Say("the agent was killed");
    scene.StartAgent(master.grpc_address());
  }
  ASSERT_EQ(kill_child(second), "");
  EXPECT_EQ(second.Wait(absl::ZeroDuration()), "killed by signal 9");
  scene.Say("a trial was killed");
  scene.StopProducers(absl::Seconds(60));
  // What the trial that was killed had recorded arrives when its agent has seen its end: rings outlive it.
  const Ledger ledger = scene.ReadLedgers();
  scene.Say(absl::StrCat(ledger.samples.size(), " samples recorded, perhaps ",
                         ledger.unsure_count(), " of them"));
  EXPECT_LE(ledger.unsure_count(), 6U) << "of one step";
  EXPECT_EQ(ledger.dropped_count, 0U);
  EXPECT_TRUE(scene.Await("the trial is failed", absl::Seconds(60), [&] {
    const auto trial = client.Trial("faults");
    return trial && trial->trial().state() == v1::TRIAL_STATE_FAILED;
  })) << scene.Logs();
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
