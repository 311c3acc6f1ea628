// The whole line in one process tree: a recorder in a child process, the agent here, a master in
// memory over real gRPC.
#include "client/agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/worker.h"
#include "stepwell/recorder.h"
#include "tests/unit/agent/fake_master.h"

namespace stepwell::agent {
namespace {

using Writers = std::map<std::string, FakeMaster::Writer>;

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-agent-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root_ = pattern;
    master_.Start();
  }
  void TearDown() override {
    StopAgent();
    master_.Stop();
    std::filesystem::remove_all(root_);
  }

  void StartAgent(std::function<void(AgentOptions&)> change = {}) {
    AgentOptions options;
    options.server = master_.address();
    options.spool_dir = root_;
    options.frame_interval = absl::Milliseconds(10);
    if (change) change(options);
    auto agent = Agent::Create(options, RealClock::Get());
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    runner_ = Worker("agent", [this] { agent_->Run(); });
  }
  void StopAgent() {
    if (agent_ == nullptr) return;
    agent_->RequestStop();
    runner_.Join();
    agent_ = nullptr;
  }

  // Runs `body` with an open recorder in a child process.
  pid_t Record(const std::string& trial, const std::function<void()>& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    stepwell_options options;
    stepwell_options_init(&options);
    options.spool_dir = root_.c_str();
    options.trial = trial.c_str();
    const bool recording = stepwell_open(&options) == STEPWELL_RECORDING;
    if (recording) body();
    _exit(recording ? 0 : 1);
  }
  static int Wait(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  std::string root_;
  FakeMaster master_;
  std::unique_ptr<Agent> agent_;
  Worker runner_;
};

void RecordSteps(int count) {
  const stepwell_scope_id forward = stepwell_define_scope("forward");
  const stepwell_series_id loss =
      stepwell_define_series("training", "loss", "1", STEPWELL_GAUGE, nullptr, 0);
  stepwell_step_begin();
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 2; ++k) {
      stepwell_scope scope;
      stepwell_scope_begin(&scope, forward);
      stepwell_scope_end(&scope);
    }
    stepwell_record(loss, 0.5 + i);
    stepwell_step_end(STEPWELL_NEXT_BATCH);
  }
}

bool AllClosed(const Writers& writers) {
  if (writers.empty()) return false;
  for (const auto& [id, writer] : writers) {
    if (!writer.closed) return false;
  }
  return true;
}

TEST_F(AgentTest, StoresWhatAShortRunRecordedAndLetsItsCloseReturn) {
  StartAgent();
  const pid_t child = Record("short", [] {
    RecordSteps(50);
    if (stepwell_close(10000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(child), 0);
  const Writers writers = master_.writers();
  ASSERT_EQ(writers.size(), 1u);
  const FakeMaster::Writer& writer = writers.begin()->second;
  EXPECT_TRUE(writer.closed);
  EXPECT_FALSE(writer.died);
  EXPECT_TRUE(writer.wrongs.empty());
  EXPECT_EQ(writer.open.external_id(), "short");
  std::map<std::string, int> counts;
  std::map<std::string, int> batches;
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
    ++counts[sample.name];
    if (sample.name == "loss") {
      EXPECT_EQ(sample.value, 0.5 + sample.batch);
    }
    if (sample.name == "forward.count") {
      EXPECT_EQ(sample.value, 2);
    }
    if (sample.name == "step") {
      EXPECT_EQ(sample.batch, batches["step"]++);
    }
  }
  EXPECT_THAT(counts, ::testing::UnorderedElementsAre(
                          ::testing::Pair("step", 50), ::testing::Pair("forward", 50),
                          ::testing::Pair("forward.count", 50), ::testing::Pair("loss", 50)));
}

TEST_F(AgentTest, WhatAKilledProcessRecordedStillArrives) {
  const pid_t child = Record("killed", [] {
    RecordSteps(20);
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(Wait(child)));
  StartAgent();
  ASSERT_TRUE(master_.WaitUntil(AllClosed));
  const Writers writers = master_.writers();
  const FakeMaster::Writer& writer = writers.begin()->second;
  EXPECT_TRUE(writer.died);
  int steps = 0;
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
    steps += sample.name == "step" ? 1 : 0;
  }
  EXPECT_EQ(steps, 20);
}

}  // namespace
}  // namespace stepwell::agent
