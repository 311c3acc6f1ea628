// The agent as a recorder starts it: a process that nobody waits for, that ends by itself, and that
// no recorder falls through the end of.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "client/agent/agent_log.h"
#include "tests/support/places/places.h"
#include "tests/unit/agent/line/agent_fixture.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

const std::string kAgentProcess = BuildPlace("bin/agent_process");

namespace fs = std::filesystem;

class OnDemandTest : public AgentFixture {
 protected:
  void TearDown() override {
    if (const pid_t agent = Holder(); agent > 0) kill(agent, SIGTERM);
    EXPECT_TRUE(WaitForFree());
    AgentFixture::TearDown();
  }

  // As a recorder starts it: from a process that waits for the one it made, no longer.
  void StartAgent(const std::string& idle_exit, const std::string& leave = "600",
                  const std::function<void()>& before = {}) {
    const pid_t child = fork();
    if (child == 0) {
      if (before) before();
      setenv("STEPWELL_AGENT_IDLE_EXIT", idle_exit.c_str(), 1);
      setenv("STEPWELL_AGENT_LEAVE", leave.c_str(), 1);
      setenv("STEPWELL_SERVER", master_.address().c_str(), 1);
      execl(kAgentProcess.c_str(), "agent", "--spool-dir", root_.c_str(), "--on-demand",
            "--frame-interval", "10ms", "--no-auto-sampling", last_flag_, nullptr);
      _exit(127);
    }
    EXPECT_EQ(Wait(child), 0);
  }
  const char* last_flag_ = nullptr;
  // The process that holds the byte, the first if not told; 0 = none.
  pid_t Holder(off_t byte = 0) const {
    const int fd = open((root_ + "/f1/agent.lock").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    const bool is_held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return is_held ? lock.l_pid : 0;
  }
  bool Poll(const std::function<bool()>& holds) const {
    for (int i = 0; i < 6000; ++i, usleep(5000)) {
      if (holds()) return true;
    }
    return false;
  }
  bool WaitForHeld() const {
    return Poll([this] { return Holder() != 0; });
  }
  bool WaitForFree() const {
    return Poll([this] { return Holder() == 0; });
  }
  int WriterCount() const {
    return static_cast<int>(std::count_if(fs::directory_iterator(root_ + "/f1"), {},
                                          [](const auto& entry) { return entry.is_directory(); }));
  }
  std::string Log() const {
    std::ifstream in(root_ + "/f1/agent.log");
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(OnDemandTest, AgentRule08_IsAProcessThatTheTrialHasNothingToDoWith) {
  const pid_t recorder = RecordOn("r", "t");
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  StartAgent("60", "600", [&] {
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof(one), &one);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    if (chdir(root_.c_str()) != 0) _exit(1);
  });
  close(pipe_ends[1]);
  // Nobody holds the pipe: `train | cat` ends with the trial.
  pollfd end = {pipe_ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 60000), 1);
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 0);
  close(pipe_ends[0]);
  ASSERT_TRUE(WaitForHeld());
  const pid_t agent = Holder();
  const std::string proc = "/proc/" + std::to_string(agent);
  EXPECT_NE(getsid(agent), getsid(0));
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(agent)),
            std::max(getpriority(PRIO_PROCESS, 0), 10));
  cpu_set_t mine;
  cpu_set_t its;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
  ASSERT_EQ(sched_getaffinity(agent, sizeof(its), &its), 0);
  EXPECT_GE(CPU_COUNT(&its), CPU_COUNT(&mine));
  EXPECT_EQ(fs::read_symlink(proc + "/cwd"), "/");
  ASSERT_TRUE(Poll([&] { return Log().find("agent_started") != std::string::npos; }));
  EXPECT_EQ(fs::read_symlink(proc + "/fd/0"), "/dev/null");
  EXPECT_EQ(fs::read_symlink(proc + "/fd/1"), "/dev/null");
  EXPECT_EQ(fs::read_symlink(proc + "/fd/2"), root_ + "/f1/agent.log");
  std::ifstream status_file(proc + "/status");
  const std::string status((std::istreambuf_iterator<char>(status_file)), {});
  EXPECT_THAT(status, ::testing::HasSubstr("SigBlk:\t0000000000004000"));  // SIGTERM is waited for
  Stop("r", recorder);
  ASSERT_TRUE(master_.WaitUntil(AllClosed));
}

TEST_F(OnDemandTest, AgentRule09_EndsWhenIdleAndLeavesNothingBehind) {
  const pid_t recorder = RecordOn("r", "t");
  StartAgent("0.2");
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) { return !writers.empty(); }));
  Stop("r", recorder);
  ASSERT_TRUE(WaitForFree());
  EXPECT_TRUE(AllClosed(master_.writers()));
  EXPECT_EQ(WriterCount(), 0);
  EXPECT_THAT(Log(), ::testing::HasSubstr("agent_idle"));
}

TEST_F(OnDemandTest, AgentRule06_APrivateRootGoesWithItsAgent) {
  const std::string given = root_;
  last_flag_ = "--remove-root";
  // Another's name is no private root's, whatever the flag says.
  StartAgent("0.1");
  ASSERT_TRUE(WaitForHeld());
  ASSERT_TRUE(WaitForFree());
  EXPECT_TRUE(fs::exists(given + "/f1/agent.lock"));
  root_ = given + "/stepwell-" + std::to_string(geteuid()) + "-aB3xYz";
  fs::create_directory(root_);
  fs::permissions(root_, fs::perms::owner_all);
  const pid_t recorder = RecordOn("r", "t");
  StartAgent("0.2");
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) { return !writers.empty(); }));
  Stop("r", recorder);
  fs::remove(root_ + "/stop-r");
  EXPECT_TRUE(Poll([this] { return !fs::exists(root_); }));
  EXPECT_TRUE(AllClosed(master_.writers()));
  root_ = given;
}

TEST_F(OnDemandTest, AgentRule09_LeavesWhatNoMasterTakesToTheNext) {
  const pid_t recorder = Record("t", 0, [] { RecordSteps(40); });
  EXPECT_EQ(Wait(recorder), 0);
  master_.Stop();
  StartAgent("60", "0.3");
  ASSERT_TRUE(WaitForHeld());
  ASSERT_TRUE(WaitForFree());
  EXPECT_EQ(WriterCount(), 1);
  EXPECT_THAT(Log(), ::testing::HasSubstr("agent_leaves"));
  master_.Start();
  StartAgent("0.1");
  ASSERT_TRUE(master_.WaitUntil(AllClosed));
  ExpectEachStepOnce(master_.writers(), 40);
}

TEST_F(OnDemandTest, AgentRule08_WhoeverStartsOneMoreGetsNone) {
  StartAgent("60");
  ASSERT_TRUE(WaitForHeld());
  const pid_t first = Holder();
  StartAgent("60");
  const pid_t recorder = RecordOn("r", "t");
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) { return !writers.empty(); }));
  Stop("r", recorder);
  EXPECT_EQ(Holder(), first);
}

// It sees the first byte held and starts none: the agent has to find it.
TEST_F(OnDemandTest, AgentRule09_ARecorderThatComesWhileOneIsAboutToLeaveIsServed) {
  const std::string hold = root_ + "/hold";
  std::ofstream(hold) << "";
  StartAgent("0.1", "600", [&] {
    setenv("STEPWELL_FAILPOINTS", ("agent_leaving=while:" + hold + "*1").c_str(), 1);
  });
  ASSERT_TRUE(Poll([this] { return Holder(1) != 0; }));
  const pid_t agent = Holder();
  EXPECT_EQ(Holder(1), agent);
  const pid_t recorder = RecordOn("r", "t");
  ASSERT_TRUE(Poll([this] { return WriterCount() == 1; }));
  for (const auto& entry : fs::directory_iterator(root_ + "/f1")) {
    if (!entry.is_directory()) continue;
    ASSERT_TRUE(Poll([&] { return fs::exists(entry.path() / "writer.json"); }));
  }
  EXPECT_TRUE(master_.writers().empty());
  fs::remove(hold);
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) { return !writers.empty(); }));
  EXPECT_EQ(Holder(), agent);
  EXPECT_EQ(Holder(1), 0) << "it stays";
  Stop("r", recorder);
  ASSERT_TRUE(WaitForFree());
  EXPECT_TRUE(AllClosed(master_.writers()));
}

// A recorder looks at the first byte four times a second, and starts an agent where it is free.
TEST_F(OnDemandTest, AgentRule09_NoRecorderFallsThroughTheEndOfAnAgent) {
  std::mt19937_64 random(TestSeed());
  constexpr int kRounds = 30;
  int start_count = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string name = "round " + std::to_string(round);
    const pid_t recorder = RecordOn(name, name);
    const auto wait_for = [&](const std::function<bool(const FakeMaster::Writer&)>& holds) {
      return Poll([&] {
        if (Holder() == 0) {
          StartAgent("0.05");
          ++start_count;
        }
        const Writers writers = master_.writers();
        return std::any_of(writers.begin(), writers.end(), [&](const auto& entry) {
          return entry.second.open.external_id() == name && holds(entry.second);
        });
      });
    };
    ASSERT_TRUE(wait_for([](const FakeMaster::Writer&) { return true; })) << name;
    Stop(name, recorder);
    ASSERT_TRUE(wait_for([](const FakeMaster::Writer& writer) { return writer.closed; })) << name;
    // Not a wait for something, but the moment of the next: around the end of the agent.
    usleep(static_cast<useconds_t>(30'000 + random() % 60'000));
  }
  ASSERT_TRUE(WaitForFree());
  EXPECT_EQ(master_.writers().size(), static_cast<std::size_t>(kRounds));
  EXPECT_TRUE(AllClosed(master_.writers()));
  EXPECT_EQ(WriterCount(), 0);
  std::cout << start_count << " agents for " << kRounds << " recorders\n";
}

TEST_F(OnDemandTest, ASettingThatCannotBeIsTheExitCode) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("STEPWELL_AGENT_LEAVE", "soon", 1);
    execl(kAgentProcess.c_str(), "agent", "--spool-dir", root_.c_str(), "--on-demand", nullptr);
    _exit(127);
  }
  const int status = Wait(child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 78);
  EXPECT_EQ(Holder(), 0);
}

}  // namespace
}  // namespace stepwell::agent
