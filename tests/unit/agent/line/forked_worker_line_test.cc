// Writers whose processes fork: when they end, and what those who close are told.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

using ForkedWorkerLineTest = AgentTest;

std::map<std::string, int> CountByWorker(const Writers& writers, const std::string& name) {
  std::map<std::string, int> counts;
  for (const auto& [id, writer] : writers) {
    for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
      if (sample.name != name) continue;
      const auto worker = sample.labels.find("worker");
      ++counts[worker == sample.labels.end() ? "" : worker->second];
    }
  }
  return counts;
}

// Forks, and the parent leaves: what goes on is a worker, and the trial ends in order when it does.
TEST_F(ForkedWorkerLineTest, AgentRule11_ADaemonsWriterEndsWithTheDaemon) {
  StartAgent();
  const pid_t opener = Record("daemon", 0, [] {
    int joined[2];
    char byte = 0;
    if (pipe(joined) != 0) _exit(1);
    if (fork() != 0) _exit(read(joined[0], &byte, 1) == 1 ? 0 : 1);
    stepwell_step_begin();
    if (write(joined[1], &byte, 1) != 1) _exit(1);
    RecordSteps(50, 1000);
    _exit(stepwell_close(20'000) == 1 ? 0 : 1);
  });
  EXPECT_EQ(Wait(opener), 0);
  ASSERT_TRUE(WaitForClosed());
  const Writers writers = master_.writers();
  ExpectEachStepOnce(writers, 50);
  EXPECT_EQ(CountByWorker(writers, "step"), (std::map<std::string, int>{{"0", 50}}));
  EXPECT_FALSE(writers.begin()->second.died);
}

// A close of the process waits for what it recorded itself, not for workers that live on.
TEST_F(ForkedWorkerLineTest, AgentRule11_ACloseDoesNotWaitForLivingWorkers) {
  StartAgent();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t recorder = Record("persistent", 0, [&] {
    close(ends[1]);
    int joined[2];
    if (pipe(joined) != 0) _exit(1);
    char byte = 0;
    if (fork() == 0) {
      RecordSteps(10);
      if (write(joined[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 0) _exit(1);
      RecordSteps(10);
      _exit(0);
    }
    RecordSteps(30, 1000);
    if (read(joined[0], &byte, 1) != 1) _exit(1);
    _exit(stepwell_close(20'000) == 1 ? 0 : 3);
  });
  close(ends[0]);
  EXPECT_EQ(Wait(recorder), 0);
  EXPECT_FALSE(AllClosed(master_.writers()));
  close(ends[1]);
  ASSERT_TRUE(WaitForClosed());
  const Writers writers = master_.writers();
  EXPECT_EQ(CountByWorker(writers, "loss"), (std::map<std::string, int>{{"", 30}, {"0", 20}}));
  EXPECT_FALSE(writers.begin()->second.died);
}

// Another agent goes on with each of them where the last one was.
TEST_F(ForkedWorkerLineTest, AgentRule11_WorkersAreServedAcrossAgents) {
  StartAgent();
  const pid_t recorder = Record("epochs", 0, [] {
    for (int epoch = 0; epoch < 20; ++epoch) {
      const pid_t worker = fork();
      if (worker == 0) {
        RecordSteps(25, 500);
        _exit(0);
      }
      Wait(worker);
    }
    _exit(stepwell_close(30'000) == 1 ? 0 : 3);
  });
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(master_.WaitUntil([&](const Writers& writers) {
      return AllClosed(writers) || CountByWorker(writers, "loss")["0"] > 60 * i;
    }));
    StopAgent();
    StartAgent();
  }
  EXPECT_EQ(Wait(recorder), 0);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_EQ(CountByWorker(master_.writers(), "loss"), (std::map<std::string, int>{{"0", 500}}));
  for (const auto& [id, writer] : master_.writers()) EXPECT_TRUE(writer.wrongs.empty());
}

}  // namespace
}  // namespace stepwell::agent
