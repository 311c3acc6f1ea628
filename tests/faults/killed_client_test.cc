// The client's side is killed: a training process in the middle of a step, and the agent again and
// again while processes record.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kAgentKills = 16;

class KilledClientTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail(); }
  void TearDown() override { EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail(); }

  std::uint64_t committed() {
    const auto status = client_.Status();
    return status ? status->chunks_committed() : 0;
  }
  bool AwaitCommits(std::uint64_t count) {
    const std::uint64_t first = committed();
    return Eventually([&] { return committed() >= first + count || !scene_.agent().running(); },
                      absl::Seconds(20));
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(KilledClientTest, AgentRule04_WhatAKilledTrialHadRecordedStillArrives) {
  scene_.StartAgent(master_.grpc_address());
  ChildProcess& trainer = scene_.StartTrainer(
      0, {{"--rate", "200"}, {"--die-at", absl::StrCat(scene_.Random(50, 500))}});
  ASSERT_EQ(trainer.Wait(absl::Seconds(30)), "killed by signal 9") << scene_.Logs();
  scene_.Say("the trial killed itself");
  EXPECT_TRUE(scene_.Await("the trial is failed", absl::Seconds(30), [&] {
    const auto trial = client_.Trial("faults");
    return trial && trial->trial().state() == v1::TRIAL_STATE_FAILED;
  })) << scene_.Logs();
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
}

// The agent ends with the job, as in a container: what the exit did not wait for would be gone.
TEST_F(KilledClientTest, WhatATrialThatNeverClosesHadRecordedIsStoredWhenItEnds) {
  scene_.StartAgent(master_.grpc_address());
  ChildProcess& trainer =
      scene_.StartTrainer(0, {{"--rate", "1000"}, {"--steps", "300"}, {"--leave-open", "1"}});
  ASSERT_EQ(trainer.Wait(absl::Seconds(30)), "exit 0") << scene_.Logs();
  scene_.agent().Kill();
  scene_.Say("the trial left main, the agent is killed");
  EXPECT_TRUE(scene_.Await("the trial is completed", absl::Seconds(30), [&] {
    const auto trial = client_.Trial("faults");
    return trial && trial->trial().state() == v1::TRIAL_STATE_COMPLETED;
  })) << scene_.Logs();
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
}

TEST_F(KilledClientTest, AnAgentThatIsKilledAgainAndAgainLosesAndDoublesNothing) {
  for (int rank = 0; rank < 2; ++rank) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  int at_append = 0;
  for (int i = 0; i < kAgentKills; ++i) {
    // Every other one dies as it is about to write a frame, the others at any moment.
    const std::string failpoint =
        i % 2 == 0 ? absl::StrCat("spool_append=exit@", scene_.Random(1, 40)) : "";
    scene_.StartAgent(master_.grpc_address(), {}, failpoint);
    if (failpoint.empty()) {
      ASSERT_TRUE(AwaitCommits(static_cast<std::uint64_t>(scene_.Random(1, 12)))) << scene_.Logs();
      scene_.agent().Kill();
    }
    ASSERT_EQ(scene_.agent().Wait(absl::Seconds(30)), "killed by signal 9") << scene_.Logs();
    at_append += failpoint.empty() ? 0 : 1;
    scene_.Say("agent killed" + (failpoint.empty() ? "" : ", " + failpoint));
  }
  scene_.StartAgent(master_.grpc_address());
  ASSERT_TRUE(AwaitCommits(3)) << scene_.Logs();
  scene_.StopProducers(absl::Seconds(60));
  scene_.Say(absl::StrCat(kAgentKills, " agent kills, ", at_append, " of them before a frame"));
  EXPECT_EQ(scene_.ReadLedgers().dropped_count, 0U);
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
}

}  // namespace
}  // namespace stepwell::faults
