// The agent as a process: killed at any moment, stopped in order, started twice.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <random>

#include "absl/time/clock.h"
#include "tests/unit/agent/line/agent_fixture.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

class AgentProcessTest : public AgentFixture {
 protected:
  pid_t StartAgent(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {AGENT_PROCESS, "--server", master_.address(),
                                          "--spool-dir", root_,      "--frame-interval",
                                          "10ms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      const int null = open("/dev/null", O_RDONLY);
      dup2(null, STDIN_FILENO);
      if (file_bytes_max_ > 0) {
        const rlimit limit{file_bytes_max_, file_bytes_max_};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      execv(argv[0], argv.data());
      _exit(127);
    }
    return child;
  }

  // Of the agent: no file of it may become larger. 0 = no limit.
  rlim_t file_bytes_max_ = 0;
};

TEST_F(AgentProcessTest, KilledAgentsLoseNothingAndRepeatNothing) {
  std::mt19937_64 random(TestSeed());
  constexpr int kSteps = 3000;
  const pid_t recorder = Record("agents die", 0, [] {
    RecordSteps(kSteps, 700);
    if (stepwell_dropped_count() != 0) _exit(4);
    if (stepwell_close(30000) != 1) _exit(3);
  });
  int kills = 0;
  pid_t agent = StartAgent();
  for (; kills < 15; ++kills) {
    // Not a wait for something, but the moment of the kill: anywhere within a few frames.
    absl::SleepFor(absl::Milliseconds(20 + static_cast<int>(random() % 150)));
    kill(agent, SIGKILL);
    Wait(agent);
    if (kills % 5 == 4) {
      master_.Stop();
      master_.Start();
    }
    agent = StartAgent();
  }
  const int status = Wait(recorder);
  EXPECT_EQ(status, 0) << "exit " << WEXITSTATUS(status);
  EXPECT_TRUE(master_.WaitUntil(AllClosed));
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ExpectEachStepOnce(master_.writers(), kSteps);
  EXPECT_EQ(master_.writers().size(), 1u);
  EXPECT_TRUE(master_.writers().begin()->second.gaps.empty());
  std::cout << kills << " kills, " << master_.writers().begin()->second.open_count << " opens, "
            << master_.writers().begin()->second.repeat_count << " repeats\n";
}

TEST_F(AgentProcessTest, SigtermSendsWhatIsThereAndTheNextAgentGoesOn) {
  pid_t agent = StartAgent({"--trial", "handed over"});
  const pid_t recorder = Record("handed over", 0, [] {
    RecordSteps(400, 1000);
    if (stepwell_close(30000) != 1) _exit(3);
  });
  ASSERT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return BatchesOf(writers, "step").size() > 50; }));
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  // Its sampler has ended in order; the rank's writer lives on.
  int closed = 0;
  for (const auto& [id, writer] : master_.writers()) {
    if (writer.closed) {
      ++closed;
      EXPECT_TRUE(writer.open.is_sampler());
    }
  }
  EXPECT_EQ(closed, 1);
  agent = StartAgent();
  EXPECT_EQ(Wait(recorder), 0);
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ExpectEachStepOnce(master_.writers(), 400);
}

TEST_F(AgentProcessTest, EndsByItselfWhenAllHasEndedAndIsStored) {
  const pid_t recorder = Record("done", 0, [] { RecordSteps(30); });
  EXPECT_EQ(Wait(recorder), 0);
  const pid_t agent = StartAgent({"--once-idle-exit", "0.3", "--trial", "done"});
  EXPECT_EQ(Wait(agent), 0);
  const Writers writers = master_.writers();
  EXPECT_EQ(writers.size(), 2u);
  EXPECT_TRUE(AllClosed(writers));
  ExpectEachStepOnce(writers, 30);
}

TEST_F(AgentProcessTest, AnotherMasterIsNotToldWhatAnEarlierOneHolds) {
  pid_t agent = StartAgent({"--trial", "first master"});
  const pid_t recorder = Record("first master", 0, [] {
    RecordSteps(30);
    if (stepwell_close(30000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(recorder), 0);
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  EXPECT_TRUE(AllClosed(master_.writers()));
  EXPECT_EQ(master_.writers().size(), 2u);
  master_.Change([](Writers& writers) { writers.clear(); });
  agent = StartAgent();
  const pid_t second = Record("second master", 0, [] {
    RecordSteps(30);
    if (stepwell_close(30000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(second), 0);
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ASSERT_EQ(master_.writers().size(), 1u);
  ExpectEachStepOnce(master_.writers(), 30);
}

TEST_F(AgentProcessTest, ACtrlCForTheTrialDoesNotEndIt) {
  const pid_t agent = StartAgent();
  const pid_t recorder = Record("interrupted", 0, [] {
    RecordSteps(100, 1000);
    if (stepwell_close(30000) != 1) _exit(3);
  });
  ASSERT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return BatchesOf(writers, "step").size() > 10; }));
  kill(agent, SIGINT);
  EXPECT_EQ(Wait(recorder), 0);
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ExpectEachStepOnce(master_.writers(), 100);
}

// Frames then go into many small files.
TEST_F(AgentProcessTest, ALimitOnTheSizeOfFilesStopsNothing) {
  file_bytes_max_ = 16 << 10;
  const pid_t agent = StartAgent();
  const pid_t recorder = Record("limited", 0, [] {
    RecordSteps(1500, 300);
    if (stepwell_close(30000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(recorder), 0);
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ExpectEachStepOnce(master_.writers(), 1500);
  EXPECT_TRUE(master_.writers().begin()->second.gaps.empty());
}

// While the master is away the spool fills; what it gives up is one gap, told with its samples.
TEST_F(AgentProcessTest, ABoundedSpoolGivesUpItsOldestAndTells) {
  const pid_t agent = StartAgent({"--spool-bytes-max", "1048576"});
  ASSERT_TRUE(Record("first", 0, [] { RecordSteps(1); }) > 0);
  ASSERT_TRUE(master_.WaitUntil(AllClosed));
  master_.Stop();
  constexpr int kSteps = 40000;
  const pid_t recorder = Record("outage", 0, [] {
    RecordSteps(kSteps, 100);
    _exit(stepwell_dropped_count() == 0 ? 0 : 4);
  });
  EXPECT_EQ(Wait(recorder), 0);
  master_.Start();
  ASSERT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return writers.size() == 2 && AllClosed(writers); }));
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  std::uint64_t stored = 0;
  std::uint64_t told = 0;
  int gap_count = 0;
  for (const auto& [id, writer] : master_.writers()) {
    if (writer.open.external_id() != "outage") continue;
    EXPECT_TRUE(writer.wrongs.empty());
    stored = FakeMaster::SamplesOf(writer).size();
    for (const pb::GapRange& gap : writer.gaps) {
      EXPECT_EQ(gap.cause(), pb::GAP_CAUSE_SPOOL_FULL);
      told += gap.sample_count();
      ++gap_count;
    }
  }
  EXPECT_GE(gap_count, 1);
  EXPECT_EQ(stored + told, std::uint64_t{kSteps} * 4);
  std::cout << stored << " samples stored, " << told << " told as given up\n";
}

TEST_F(AgentProcessTest, ExitCodesTellWhatWasWrong) {
  const pid_t first = StartAgent({"--trial", "held"});
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) { return !writers.empty(); }));
  const std::pair<std::vector<std::string>, int> rows[] = {
      {{}, 0},  // another agent serves it
      {{"--spool-dir", "/proc/nowhere"}, 73},
      {{"--server", "nowhere"}, 78},
      {{"--no-such-flag"}, 64},
      {{"--help"}, 0},
  };
  for (const auto& [arguments, code] : rows) {
    const int status = Wait(StartAgent(arguments));
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), code) << ::testing::PrintToString(arguments);
  }
  kill(first, SIGTERM);
  EXPECT_EQ(Wait(first), 0);
}

}  // namespace
}  // namespace stepwell::agent
