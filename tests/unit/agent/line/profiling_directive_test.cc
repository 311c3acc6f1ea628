// What the master asks of a recorder reaches it through its control word: in Opened, later, and by
// another agent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "client/recorder/src/spool_format.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

class ProfilingDirectiveTest : public AgentTest {
 protected:
  static constexpr int kStepsPerPhase = 50;
  static constexpr int kPhaseBatches = 1000;

  static pb::Directive Profile(bool on) {
    pb::Directive directive;
    directive.mutable_profiling()->set_on(on);
    return directive;
  }
  // Phase p is `kStepsPerPhase` steps with batches from p * kPhaseBatches.
  pid_t RecordPhases(int count) {
    const std::string root = root_;
    return Record("t", 0, [root, count] {
      const stepwell_series_id loss =
          stepwell_define_series("training", "loss", "1", STEPWELL_GAUGE, nullptr, 0);
      for (int phase = 0; phase < count; ++phase) {
        while (!std::filesystem::exists(root + "/begin-" + std::to_string(phase))) usleep(2000);
        for (int i = 0; i < kStepsPerPhase; ++i) {
          stepwell_step_begin();
          stepwell_record(loss, i);
          stepwell_step_end(phase * kPhaseBatches + i);
        }
        std::ofstream(root + "/ended-" + std::to_string(phase)) << "";
      }
      stepwell_close(20000);
    });
  }
  void RunPhase(int phase) {
    std::ofstream(root_ + "/begin-" + std::to_string(phase)) << "";
    const std::string ended = root_ + "/ended-" + std::to_string(phase);
    for (int i = 0; i < 10000 && !std::filesystem::exists(ended); ++i) usleep(2000);
    EXPECT_TRUE(std::filesystem::exists(ended));
  }
  // Waits until the recorder's control word is this.
  bool WaitForControl(std::uint32_t wanted) {
    for (int i = 0; i < 10000; ++i, usleep(2000)) {
      for (const auto& entry : std::filesystem::directory_iterator(root_ + "/f1")) {
        std::ifstream header(entry.path() / "header", std::ios::binary);
        header.seekg(offsetof(spool::WriterHeader, control));
        std::uint32_t control = 77;
        header.read(reinterpret_cast<char*>(&control), sizeof(control));
        if (header && control == wanted) return true;
      }
    }
    return false;
  }
  bool WaitForOpen(int open_count) {
    return master_.WaitUntil([&](const Writers& writers) {
      return !writers.empty() && writers.begin()->second.open_count >= open_count;
    });
  }
  // The word is loaded by StepEnd: the first step of a phase is still as the one before.
  int StoredOf(int phase) {
    int count = 0;
    for (const auto& [batch, stored] : BatchesOf(master_.writers(), "loss")) {
      EXPECT_EQ(stored, 1);
      count += batch / kPhaseBatches == phase ? 1 : 0;
    }
    return count;
  }
};

TEST_F(ProfilingDirectiveTest, AgentRule12_StopsARecorderAndLetsItGoOn) {
  StartAgent();
  const pid_t child = RecordPhases(3);
  RunPhase(0);
  ASSERT_TRUE(WaitForOpen(1));
  master_.DirectNow(FakeMaster::Whom::kRanks, "t", Profile(false));
  ASSERT_TRUE(WaitForControl(spool::kControlOff));
  RunPhase(1);
  master_.DirectNow(FakeMaster::Whom::kRanks, "t", Profile(true));
  ASSERT_TRUE(WaitForControl(0));
  RunPhase(2);
  EXPECT_EQ(Wait(child), 0);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_EQ(StoredOf(0), kStepsPerPhase);
  EXPECT_LE(StoredOf(1), 1);
  EXPECT_GE(StoredOf(2), kStepsPerPhase - 1);
}

TEST_F(ProfilingDirectiveTest, AgentRule12_HoldsFromOpenedOnAndChangesWithAReconnect) {
  master_.DirectAtOpen(FakeMaster::Whom::kRanks, "t", {Profile(false)});
  StartAgent();
  const pid_t child = RecordPhases(2);
  ASSERT_TRUE(WaitForOpen(1));
  ASSERT_TRUE(WaitForControl(spool::kControlOff));
  RunPhase(0);
  // Asked otherwise while the agent is not connected.
  master_.Stop();
  master_.DirectAtOpen(FakeMaster::Whom::kRanks, "t", {});
  master_.Start();
  ASSERT_TRUE(WaitForControl(0));
  RunPhase(1);
  EXPECT_EQ(Wait(child), 0);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_LE(StoredOf(0), 1);
  EXPECT_GE(StoredOf(1), kStepsPerPhase - 1);
}

TEST_F(ProfilingDirectiveTest, WhatAnEarlierAgentStoredHoldsUntilTheMasterIsHeard) {
  master_.DirectAtOpen(FakeMaster::Whom::kRanks, "t", {Profile(false)});
  StartAgent();
  const pid_t child = RecordPhases(1);
  ASSERT_TRUE(WaitForControl(spool::kControlOff));
  StopAgent();
  master_.Stop();
  StartAgent();
  master_.DirectAtOpen(FakeMaster::Whom::kRanks, "t", {});
  EXPECT_TRUE(WaitForControl(spool::kControlOff));
  master_.Start();
  ASSERT_TRUE(WaitForControl(0));
  RunPhase(0);
  EXPECT_EQ(Wait(child), 0);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_GE(StoredOf(0), kStepsPerPhase - 1);
}

}  // namespace
}  // namespace stepwell::agent
