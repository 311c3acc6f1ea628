// Shared by the tests of the agent as an object and as a process: a spool root, a master in memory,
// recorders in child processes.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/worker.h"
#include "client/agent/agent.h"
#include "stepwell/recorder.h"
#include "tests/unit/agent/line/fake_master.h"

namespace stepwell::agent {

using Writers = std::map<std::string, FakeMaster::Writer>;

class AgentFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-agent-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root_ = pattern;
    master_.Start();
  }
  void TearDown() override {
    master_.Stop();
    std::filesystem::remove_all(root_);
  }

  // Runs `body` with an open recorder in a child process, which ends without closing it.
  pid_t Record(const std::string& trial, int rank, const std::function<void()>& body,
               const std::string& attempt_key = "", const std::string& server = "") {
    const pid_t child = fork();
    if (child != 0) return child;
    setenv("STEPWELL_AGENT", "off", 1);  // these tests start theirs
    stepwell_options options;
    stepwell_options_init(&options);
    options.spool_dir = root_.c_str();
    options.trial = trial.c_str();
    options.rank = rank;
    if (!attempt_key.empty()) options.attempt_key = attempt_key.c_str();
    if (!server.empty()) options.server = server.c_str();
    const bool recording = stepwell_open(&options) == STEPWELL_RECORDING;
    if (recording) body();
    _exit(recording ? 0 : 1);
  }
  // Records until Stop(name), at most a minute.
  pid_t RecordOn(const std::string& name, const std::string& trial, int rank = 0,
                 const std::string& attempt_key = "", const std::string& server = "");
  void Stop(const std::string& name, pid_t child) {
    std::ofstream(root_ + "/stop-" + name) << "";
    EXPECT_EQ(Wait(child), 0) << name;
  }
  // Makes steps of a millisecond until StopCounted(trial), at most a minute, then closes: for what must
  // happen while a trial runs, however slow the machine is.
  pid_t RecordCounted(const std::string& trial);
  // How many steps it made. Fails where its close was not acked.
  int StopCounted(const std::string& trial, pid_t child) {
    Stop(trial, child);
    int steps = 0;
    EXPECT_TRUE(std::ifstream(root_ + "/steps-" + trial) >> steps);
    return steps;
  }
  static int Wait(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  std::string root_;
  FakeMaster master_;
};

// Steps of two scopes `forward` and a record `loss` of 0.5 + its batch; `pause_us` between them.
inline void RecordSteps(int count, int pause_us = 0) {
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
    if (pause_us > 0) usleep(static_cast<useconds_t>(pause_us));
  }
}

inline pid_t AgentFixture::RecordOn(const std::string& name, const std::string& trial, int rank,
                                    const std::string& attempt_key, const std::string& server) {
  const std::string stop = root_ + "/stop-" + name;
  return Record(
      trial, rank,
      [stop] {
        for (int i = 0; i < 6000 && !std::filesystem::exists(stop); ++i) RecordSteps(1, 10000);
        stepwell_close(2000);
      },
      attempt_key, server);
}

inline pid_t AgentFixture::RecordCounted(const std::string& trial) {
  const std::string stop = root_ + "/stop-" + trial;
  const std::string told = root_ + "/steps-" + trial;
  return Record(trial, 0, [stop, told] {
    int steps = 0;
    for (; steps < 60000 && !std::filesystem::exists(stop); ++steps) RecordSteps(1, 1000);
    std::ofstream(told) << steps;
    if (stepwell_close(20000) != 1) _exit(3);
  });
}

inline bool AllClosed(const Writers& writers) {
  for (const auto& [id, writer] : writers) {
    if (!writer.closed) return false;
  }
  return !writers.empty();
}

// How often each batch of `name` was stored, over all writers.
inline std::map<std::int32_t, int> BatchesOf(const Writers& writers, const std::string& name) {
  std::map<std::int32_t, int> counts;
  for (const auto& [id, writer] : writers) {
    for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
      if (sample.name == name) ++counts[sample.batch];
    }
  }
  return counts;
}

// Batches 0 ... count - 1 were stored exactly once each, and nothing broke the contract.
inline void ExpectEachStepOnce(const Writers& writers, int count) {
  for (const auto& [id, writer] : writers) {
    EXPECT_TRUE(writer.wrongs.empty()) << writer.wrongs.front();
  }
  for (const char* name : {"step", "forward", "forward.count", "loss"}) {
    const std::map<std::int32_t, int> counts = BatchesOf(writers, name);
    EXPECT_EQ(counts.size(), static_cast<std::size_t>(count)) << name;
    for (const auto& [batch, stored] : counts) {
      EXPECT_EQ(stored, 1) << name << " of batch " << batch;
    }
  }
}

// The agent as an object of this process.
class AgentTest : public AgentFixture {
 protected:
  void TearDown() override {
    StopAgent();
    AgentFixture::TearDown();
  }
  void StartAgent(std::function<void(AgentOptions&)> change = {}) {
    AgentOptions options;
    options.server = master_.address();
    options.spool_dir = root_;
    options.frame_interval = absl::Milliseconds(10);
    options.auto_sampling = false;
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
  bool WaitForClosed() { return master_.WaitUntil(AllClosed); }

  std::unique_ptr<Agent> agent_;
  Worker runner_;
};

}  // namespace stepwell::agent
