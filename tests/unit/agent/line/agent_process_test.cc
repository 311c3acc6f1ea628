// The agent as a process: killed at any moment, stopped in order, started twice.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <random>

#include "absl/time/clock.h"
#include "tests/support/places/places.h"
#include "tests/unit/agent/line/agent_fixture.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

class AgentProcessTest : public AgentFixture {
 protected:
  pid_t StartAgent(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {BuildPlace("bin/agent_process"),
                                          "--server",
                                          server_.empty() ? master_.address() : server_,
                                          "--spool-dir",
                                          root_,
                                          "--frame-interval",
                                          "10ms",
                                          "--no-auto-sampling"};
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

  // It has begun: a signal finds it prepared.
  bool WaitForLock(pid_t agent) const {
    for (int i = 0; i < 6000; ++i, usleep(5000)) {
      const int file = open((root_ + "/f1/agent.lock").c_str(), O_RDONLY | O_CLOEXEC);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      lock.l_len = 1;
      const bool is_held = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
      close(file);
      if (is_held && lock.l_pid == agent) return true;
    }
    return false;
  }

  // "" = the fake's.
  std::string server_;
  // Of the agent: no file of it may become larger. 0 = no limit.
  rlim_t file_bytes_max_ = 0;
};

TEST_F(AgentProcessTest, AgentRule02_KilledAgentsLoseNothingAndRepeatNothing) {
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
  EXPECT_TRUE(WaitForLock(agent));
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ExpectEachStepOnce(master_.writers(), kSteps);
  EXPECT_EQ(master_.writers().size(), 1u);
  EXPECT_TRUE(master_.writers().begin()->second.gaps.empty());
  std::cout << kills << " kills, " << master_.writers().begin()->second.open_count << " opens, "
            << master_.writers().begin()->second.repeat_count << " repeats\n";
}

TEST_F(AgentProcessTest, AgentRule09_SigtermSendsWhatIsThereAndTheNextAgentGoesOn) {
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
  EXPECT_GE(closed, 1);  // two where it began before it knew the attempt
  agent = StartAgent();
  EXPECT_EQ(Wait(recorder), 0);
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ExpectEachStepOnce(master_.writers(), 400);
}

// One that takes the connection and never says a word.
TEST_F(AgentProcessTest, AgentRule09_SigtermEndsItThoughTheMasterHangs) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 16), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  server_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  pid_t agent = StartAgent();
  EXPECT_EQ(Wait(Record("hung", 0, [] { RecordSteps(40, 1000); })), 0);
  const int connection = accept(listener, nullptr, nullptr);
  ASSERT_GE(connection, 0);
  const absl::Time asked = absl::Now();
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  // 5 s by the contract; the rest is for a busy machine.
  EXPECT_LE(absl::Now() - asked, absl::Seconds(8));
  close(connection);
  close(listener);
  // Nothing is lost.
  server_.clear();
  agent = StartAgent();
  EXPECT_TRUE(master_.WaitUntil(AllClosed));
  kill(agent, SIGTERM);
  EXPECT_EQ(Wait(agent), 0);
  ExpectEachStepOnce(master_.writers(), 40);
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

TEST_F(AgentProcessTest, AgentRule09_ACtrlCForTheTrialDoesNotEndIt) {
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
  // More than the bound holds, which is one for all writers.
  constexpr int kSteps = 80000;
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

// What the agent says where its spool cannot be used, word for word, and how it ends.
class BadSpoolTest : public AgentProcessTest {
 protected:
  static constexpr uid_t kNobody = 65534;

  struct Ended {
    int code = -1;
    std::string text;
  };
  // As `nobody` where `unprivileged`: for root every check of permissions passes.
  Ended RunAgent(const std::string& spool_dir, bool unprivileged) {
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    const std::string place = BuildPlace("bin/agent_process");
    const pid_t child = fork();
    if (child == 0) {
      dup2(pipe_ends[1], STDERR_FILENO);
      dup2(pipe_ends[1], STDOUT_FILENO);
      close(pipe_ends[0]);
      close(pipe_ends[1]);
      // The name may lie below a directory that only root may enter.
      const int program = open(place.c_str(), O_RDONLY | O_CLOEXEC);
      if (unprivileged &&
          (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
        _exit(126);
      }
      char* const argv[] = {const_cast<char*>("agent"), const_cast<char*>("--spool-dir"),
                            const_cast<char*>(spool_dir.c_str()), nullptr};
      fexecve(program, argv, environ);
      _exit(127);
    }
    close(pipe_ends[1]);
    Ended ended;
    char bytes[4096];
    for (ssize_t got = 0; (got = read(pipe_ends[0], bytes, sizeof(bytes))) > 0;) {
      ended.text.append(bytes, static_cast<std::size_t>(got));
    }
    close(pipe_ends[0]);
    const int status = Wait(child);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ended;
  }
  // In a child with mounts of its own, where `spool` is a file system with these options.
  void WithMount(const char* options, unsigned long flags,
                 const std::function<void(const std::string&)>& body) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string spool = root_ + "/mounted";
      std::filesystem::create_directory(spool);
      if (unshare(CLONE_NEWNS) != 0 ||
          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("none", spool.c_str(), "tmpfs", flags, options) != 0) {
        _exit(77);
      }
      body(spool);
      std::cout.flush();
      _exit(HasFailure() ? 1 : 0);
    }
    const int status = Wait(child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mounts here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
};

TEST_F(BadSpoolTest, SaysWhoseItIsAndWhatIsAllowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string spool = root_ + "/spool";
  std::filesystem::permissions(root_, std::filesystem::perms(0755));
  std::filesystem::create_directory(spool);
  const struct {
    const char* name;
    uid_t owner;
    mode_t mode;
    std::string text;
  } rows[] = {
      {"of another user", 0, 0755, spool + " belongs to another user"},
      {"may not be entered", 0, 0700, spool + ": Permission denied"},
      {"others may enter", kNobody, 0755, spool + " may be entered by others (chmod 700 it)"},
      {"may not be written", kNobody, 0500, spool + " cannot be written to: Permission denied"},
      {"may not be read", kNobody, 0300, spool + ": Permission denied"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_EQ(chown(spool.c_str(), row.owner, row.owner), 0);
    ASSERT_EQ(chmod(spool.c_str(), row.mode), 0);
    const Ended ended = RunAgent(spool, /*unprivileged=*/true);
    EXPECT_EQ(ended.code, 73);
    EXPECT_THAT(ended.text, ::testing::EndsWith(row.text + "\n"));
    EXPECT_THAT(ended.text, ::testing::StartsWith("stepwell agent: "));
  }
}

TEST_F(BadSpoolTest, SaysThatTheDiskMayOnlyBeRead) {
  WithMount("mode=0700", MS_RDONLY, [this](const std::string& spool) {
    const Ended ended = RunAgent(spool, /*unprivileged=*/false);
    EXPECT_EQ(ended.code, 73);
    EXPECT_EQ(ended.text,
              "stepwell agent: " + spool + " cannot be written to: Read-only file system\n");
  });
}

TEST_F(BadSpoolTest, SaysThatTheDiskIsFull) {
  const struct {
    const char* name;
    const char* mount_options;
    std::string doing;
  } rows[] = {
      // The root of the file system takes the first, the format's directory the next.
      {"no room for a directory", "mode=0700,nr_inodes=1", "create directory f1"},
      {"no room for the lock", "mode=0700,nr_inodes=2", "open agent.lock"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    WithMount(row.mount_options, 0, [&](const std::string& spool) {
      const Ended ended = RunAgent(spool, /*unprivileged=*/false);
      EXPECT_EQ(ended.code, 73);
      EXPECT_EQ(ended.text,
                "stepwell agent: " + spool + ": " + row.doing + ": No space left on device\n");
    });
  }
}

}  // namespace
}  // namespace stepwell::agent
