// How a recorder starts its agent, each case in a process of its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "client/recorder/src/agent_presence.h"
#include "stepwell/stepwell.h"
#include "tests/support/no_processes.h"
#include "tests/support/places/places.h"
#include "tests/unit/recorder/files/agent_start_fixture.h"

namespace stepwell::recorder {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

TEST_F(AgentStartTest, AgentRule08_TheAgentGetsNothingOfTheTrials) {
  ExpectInChild([this] {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);  // stays open over an exec
    signal(SIGPIPE, SIG_IGN);
    sigset_t blocked;
    sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    setenv("PYTHONPATH", "/theirs", 1);
    setenv("LD_PRELOAD", "", 1);
    setenv("STEPWELL_TOKEN", "secret", 1);
    ASSERT_EQ(chdir(directory_.path().c_str()), 0);
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitProbe()) << stepwell_message();
    EXPECT_STREQ(stepwell_message(), "");
    stepwell_close(0);
  });
  EXPECT_EQ(Reported("words"), "agent --spool-dir " + directory_.path() + " --on-demand");
  EXPECT_EQ(Reported("descriptors"), "0=/dev/null 1=/dev/null 2=/dev/null");
  EXPECT_EQ(Reported("cwd"), "/");
  EXPECT_EQ(Reported("session"), "own");
  EXPECT_EQ(Reported("SigBlk:"), "0000000000000000");
  // But for two of the C library's own.
  const unsigned long ignored = std::stoul(Reported("SigIgn:"), nullptr, 16);
  EXPECT_EQ(ignored & ~0x180000000ul, 0u) << std::hex << ignored;
  EXPECT_THAT(ProbeReport(), HasSubstr("variable STEPWELL_TOKEN=secret\n"));
  EXPECT_THAT(ProbeReport(), Not(HasSubstr("PYTHONPATH")));
  EXPECT_THAT(ProbeReport(), Not(HasSubstr("LD_PRELOAD")));
}

TEST_F(AgentStartTest, AgentRule08_ADeadAgentIsReplacedWithinTwoSeconds) {
  ExpectInChild([this] {
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    for (int kill_count = 0; kill_count < 3; ++kill_count) {
      ASSERT_TRUE(AwaitProbe()) << stepwell_message();
      const pid_t dead = Holder();
      ASSERT_EQ(kill(dead, SIGKILL), 0);
      const auto killed_at = steady_clock::now();
      ASSERT_TRUE(Eventually(milliseconds(10'000), [&] {
        const pid_t holder = Holder();
        return holder != 0 && holder != dead;
      }));
      EXPECT_LE(steady_clock::now() - killed_at, milliseconds(2000));
    }
    stepwell_close(0);
  });
}

TEST_F(AgentStartTest, AgentRule08_OfRanksThatRaceOneGetsItsAgent) {
  constexpr int kRanks = 8;
  ExpectInChild([this] {
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(fork());
      if (ranks.back() != 0) continue;
      close(gate[1]);
      char byte;
      (void)!read(gate[0], &byte, 1);  // all at once, when the last writer closes
      const bool is_open = OpenWithProbe() == STEPWELL_RECORDING;
      Scoped("a");
      _exit(is_open && stepwell_close(10'000) == 1 ? 0 : 1);
    }
    close(gate[0]);
    close(gate[1]);
    for (const pid_t rank : ranks) {
      int status = -1;
      EXPECT_EQ(waitpid(rank, &status, 0), rank);
      EXPECT_EQ(status, 0);
    }
    // Those that lost have ended by now, or will.
    EXPECT_TRUE(Eventually(milliseconds(5000), [this] {
      int count = 0;
      for (const auto& process : std::filesystem::directory_iterator("/proc")) {
        const std::string words = ReadText(process.path() / "cmdline");
        if (words.find(directory_.path()) != std::string::npos) ++count;
      }
      return count == 1;
    }));
  });
}

TEST_F(AgentStartTest, AgentRule08_TheTrialHasNoChildOfOurs) {
  ExpectInChild([this] {
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitProbe()) << stepwell_message();
    // The first process ends on the way; nobody but the recorder may have waited for it meanwhile.
    ASSERT_TRUE(Eventually(milliseconds(5000), [] {
      siginfo_t ended{};
      return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
    }));
    for (const auto until = steady_clock::now() + milliseconds(700); steady_clock::now() < until;) {
      ASSERT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
      ASSERT_EQ(errno, ECHILD);
    }
    stepwell_close(0);
  });
}

// Where whoever loses his parent becomes the trial's child: a dead agent would stay a zombie. What the
// trial itself started is never waited for.
TEST_F(AgentStartTest, AgentRule08_ADeadAgentOfASubreaperIsReapedAndNobodyElse) {
  ExpectInChild([this] {
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitProbe()) << stepwell_message();
    const pid_t agent = Holder();
    const pid_t own = fork();
    if (own == 0) _exit(7);
    const auto is_child = [](pid_t pid) {
      siginfo_t ended{};
      return waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
    };
    // As soon as the process that started it has ended.
    ASSERT_TRUE(Eventually(milliseconds(10'000), [&] { return is_child(agent); }));
    // Seen by a look of the recorder's as what it is.
    std::this_thread::sleep_for(milliseconds(600));
    ASSERT_EQ(kill(agent, SIGKILL), 0);
    EXPECT_TRUE(Eventually(milliseconds(10'000), [&] { return !is_child(agent); }));
    int status = 0;
    EXPECT_EQ(waitpid(own, &status, 0), own);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    stepwell_close(0);
  });
}

// A worker of a process that closed its recorder and lives on looks after the agent itself.
TEST_F(AgentStartTest, AgentRule11_AWorkerWhoseParentHasClosedLooksAfterTheAgent) {
  ExpectInChild([this] {
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitProbe()) << stepwell_message();
    const pid_t worker = fork();
    if (worker == 0) {
      Scoped("a");
      std::this_thread::sleep_for(std::chrono::seconds(60));
      _exit(0);
    }
    ASSERT_TRUE(Eventually(milliseconds(10'000), [this] {
      const std::filesystem::directory_iterator format(directory_.path() + "/f1");
      return std::any_of(begin(format), end(format), [](const auto& entry) {
        return std::filesystem::exists(entry.path() / "w0-0/header");
      });
    }));
    stepwell_close(0);
    const pid_t dead = Holder();
    ASSERT_EQ(kill(dead, SIGKILL), 0);
    EXPECT_TRUE(Eventually(milliseconds(10'000), [&] {
      const pid_t holder = Holder();
      return holder != 0 && holder != dead;
    }));
    kill(worker, SIGKILL);
    waitpid(worker, nullptr, 0);
  });
}

// Nor after a close that did not wait for it.
TEST_F(AgentStartTest, AgentRule08_AShortRunLeavesNoZombie) {
  ExpectInChild([this] {
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    stepwell_close(0);
    EXPECT_TRUE(AwaitProbe());
    EXPECT_TRUE(Eventually(milliseconds(5000), [] {
      siginfo_t ended{};
      return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
    }));
  });
}

// Nothing of ours runs at its end.
TEST_F(AgentStartTest, AgentRule11_AProcessThatLeavesAtOnceHasItsAgentStarted) {
  EXPECT_EQ(RunInChild([this] {
              const bool is_open = OpenWithProbe() == STEPWELL_RECORDING;
              Scoped("a");
              _exit(is_open ? 0 : 1);
            }),
            0);
  EXPECT_TRUE(AwaitProbe());
}

TEST_F(AgentStartTest, AgentRule08_ATrialThatReapsEverybodyIsNoFailure) {
  ExpectInChild([this] {
    signal(SIGCHLD, SIG_IGN);  // the kernel reaps
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitProbe());
    EXPECT_STREQ(stepwell_message(), "");
    Scoped("a");
    EXPECT_EQ(stepwell_close(10'000), 1);
  });
}

TEST_F(AgentStartTest, AgentRule10_ACloseWaitsForTheAgentThatIsOnItsWay) {
  ExpectInChild([this] {
    setenv("STEPWELL_PROBE", "late", 1);
    setenv("STEPWELL_PROBE_DELAY_MS", "3000", 1);
    const auto begin = steady_clock::now();
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    Scoped("a");
    EXPECT_EQ(stepwell_close(20'000), 1);
    EXPECT_GE(steady_clock::now() - begin, milliseconds(3000)) << "longer than for nobody";
  });
}

TEST_F(AgentStartTest, AgentRule08_WithoutAProgramItRecordsAndSaysSoOnce) {
  const struct {
    const char* name;
    std::string agent;
    const char* probe;
    std::string message;
  } rows[] = {
      {"none there", "/no/such/agent", "", "no agent: there is no program /no/such/agent"},
      {"no program", directory_.path(), "", "no agent: there is no program " + directory_.path()},
      {"it refuses", kAgentProbe, "refuse",
       "no agent: " + kAgentProbe + " agent --spool-dir " + directory_.path() +
           " ended with exit code 64"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ExpectInChild([&] {
      setenv("STEPWELL_PROBE", row.probe, 1);
      const auto begin = steady_clock::now();
      ASSERT_EQ(OpenWith(row.agent), STEPWELL_RECORDING);
      Scoped("a");
      EXPECT_TRUE(Eventually(milliseconds(10'000), [&] {
        return stepwell_message() == row.message;
      })) << stepwell_message();
      EXPECT_EQ(stepwell_current_state(), STEPWELL_RECORDING);
      EXPECT_EQ(stepwell_dropped_count(), 0u);
      EXPECT_EQ(stepwell_close(60'000), 0);
      EXPECT_LE(steady_clock::now() - begin, milliseconds(8000)) << "2 s since the first failure";
    });
  }
}

bool Install(std::vector<sock_filter> program, unsigned flags, int* listener) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  if (listener != nullptr) *listener = static_cast<int>(result);
  return result >= 0;
}

TEST_F(AgentStartTest, AgentRule17_WhereNoProcessMayBeStartedItRecords) {
  const int status = RunInChild([this] {
    if (!Install(NoProcesses(), 0, nullptr)) _exit(kExitSkipped);
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    Scoped("a");
    EXPECT_TRUE(Eventually(milliseconds(10'000), [] {
      return stepwell_message() ==
             "no agent: " + kAgentProbe + " cannot be started: Operation not permitted";
    })) << stepwell_message();
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    EXPECT_EQ(stepwell_close(60'000), 0);
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kExitSkipped) GTEST_SKIP() << "seccomp is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(Lines(), testing::ElementsAre("scope a"));
}

TEST_F(AgentStartTest, AgentRule17_WhereNeitherThreadNorProcessFitsItRecords) {
  const bool is_root = geteuid() == 0;
  ASSERT_TRUE(!is_root || chown(directory_.path().c_str(), 65534, 65534) == 0);
  ExpectInChild([this, is_root] {
    // The limit does not hold for root.
    ASSERT_TRUE(!is_root || (setgid(65534) == 0 && setuid(65534) == 0));
    const rlimit none{0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING) << stepwell_message();
    Scoped("a");
    const auto begin = steady_clock::now();
    EXPECT_EQ(stepwell_close(60'000), 0);
    EXPECT_LE(steady_clock::now() - begin, milliseconds(6000));
  });
  EXPECT_EQ(Holder(), 0);
  EXPECT_THAT(Lines(), testing::ElementsAre("scope a"));
}

// A program on a file server that hangs: its exec does not return.
TEST_F(AgentStartTest, AgentRule17_AStartThatHangsHoldsNobody) {
  const int status = RunInChild([this] {
    const std::vector<sock_filter> hang = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    int listener = -1;  // nobody answers
    if (!Install(hang, SECCOMP_FILTER_FLAG_NEW_LISTENER, &listener)) _exit(kExitSkipped);
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    const auto begin = steady_clock::now();
    for (int i = 0; i < 1000; ++i) Scoped("a");
    EXPECT_LE(steady_clock::now() - begin, milliseconds(500));
    // By now the thread is caught.
    (void)Eventually(milliseconds(300), [] { return false; });
    const auto closed = steady_clock::now();
    EXPECT_EQ(stepwell_close(0), 0);
    EXPECT_LE(steady_clock::now() - closed, milliseconds(3000));
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kExitSkipped)
    GTEST_SKIP() << "seccomp's listeners are not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(AgentStartTest, NobodyIsStartedWhereThatIsOff) {
  const struct {
    const char* name;
    const char* variable;
    const char* agent;
    bool starts;
  } rows[] = {{"by the environment", "off", kAgentProbe.c_str(), true},
              {"by the program's name", "", "off", true},
              {"by the option", "", kAgentProbe.c_str(), false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ExpectInChild([&] {
      setenv("STEPWELL_AGENT", row.variable, 1);
      Recorder recorder({.spool_dir = directory_.path(),
                         .exit_wait = milliseconds(0),
                         .agent = row.agent,
                         .start_agent = row.starts});
      ASSERT_EQ(recorder.state(), STEPWELL_RECORDING);
      EXPECT_FALSE(Eventually(milliseconds(600), [this] { return Holder() != 0; }));
      EXPECT_STREQ(stepwell_message(), "");
    });
  }
}

// A lock, held by another process until the object goes.
class HeldLock {
 public:
  explicit HeldLock(const std::string& path, short type = F_WRLCK) {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
      struct flock wanted {};
      wanted.l_type = type;
      wanted.l_whence = SEEK_SET;
      wanted.l_len = 1;
      if (fcntl(fd, F_SETLK, &wanted) != 0) _exit(1);
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }
    char byte;
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~HeldLock() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  pid_t child_;
};

TEST_F(AgentStartTest, AgentRule05_AnAgentOfAnotherFormatServesOthers) {
  const struct {
    const char* format;
    bool starts;
  } rows[] = {{"f2", true}, {"f1", false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.format);
    const TemporaryDirectory root;
    const std::string folder = root.path() + "/" + row.format;
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    const HeldLock lock(folder + "/agent.lock");
    ExpectInChild([&] {
      unsetenv("STEPWELL_AGENT");
      Recorder recorder(
          {.spool_dir = root.path(), .exit_wait = milliseconds(0), .agent = kAgentProbe});
      const std::string probe = root.path() + "/probe";
      const milliseconds patience(row.starts ? 10'000 : 800);
      EXPECT_EQ(Eventually(patience, [&] { return access(probe.c_str(), F_OK) == 0; }), row.starts);
    });
  }
}

TEST_F(AgentStartTest, ATrialWithoutDescriptorsStartsNoSecondAgent) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "without descriptors the sanitizer takes objects for unreadable: it asks a pipe";
#endif
  ExpectInChild([this] {
    ASSERT_EQ(OpenWithProbe(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitProbe()) << stepwell_message();
    const rlimit none{0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_FALSE(Eventually(milliseconds(800), [] { return *stepwell_message() != '\0'; }))
        << stepwell_message();
    Scoped("a");
    EXPECT_EQ(stepwell_close(10'000), 1);
  });
}

TEST_F(AgentStartTest, AgentRule07_ASystemAgentIsNotStartedByATrial) {
  const std::string system = directory_.path() + "/run";
  ASSERT_EQ(mkdir(system.c_str(), 0700), 0);
  ASSERT_EQ(mkdir((system + "/f1").c_str(), 0700), 0);
  const std::string own = system + "/u" + std::to_string(geteuid());
  {
    const HeldLock lock(system + "/f1/agent.lock");
    ExpectInChild([&] {
      setenv("STEPWELL_SYSTEM_ROOT", system.c_str(), 1);
      setenv("STEPWELL_AGENT", kAgentProbe.c_str(), 1);
      Recorder recorder({.exit_wait = milliseconds(0)});
      EXPECT_EQ(recorder.state(), STEPWELL_RECORDING);
      EXPECT_EQ(recorder.message(), "");
      EXPECT_FALSE(Eventually(milliseconds(600), [&] { return HolderOf(own) != 0; }));
    });
  }
  EXPECT_EQ(FindWriters(own).size(), 1u);
  EXPECT_FALSE(IsSystemRootServed(system, /*may_be_own=*/true)) << "its agent is gone";
  if (geteuid() == 0) {
    const HeldLock lock(system + "/f1/agent.lock");
    EXPECT_TRUE(IsSystemRootServed(system, /*may_be_own=*/false));
    ASSERT_EQ(chown((system + "/f1").c_str(), 65534, 65534), 0);
    EXPECT_FALSE(IsSystemRootServed(system, /*may_be_own=*/false)) << "a stranger's folder";
    ASSERT_EQ(chown((system + "/f1").c_str(), 0, 0), 0);
  }
  const HeldLock strangers(system + "/f1/agent.lock", F_RDLCK);
  EXPECT_FALSE(IsSystemRootServed(system, /*may_be_own=*/true)) << "who only reads is no agent";
}

}  // namespace
}  // namespace stepwell::recorder
