// The agent that a trial brings with it: real trials, the real program, a real master. No trial here
// is told of an agent; `stepwell` lies beside it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

namespace fs = std::filesystem;

// Of a process that ends meanwhile, what there was.
std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class StartedAgentTest : public SpineTest {
 protected:
  void SetUp() override {
    StartMaster();
    fs::create_directory(temporary());
    fs::permissions(temporary(), fs::perms(0777) | fs::perms::sticky_bit);
  }
  void TearDown() override {
    // They end by themselves; a failed test should not leave any.
    if (!Eventually([this] { return Agents().empty(); }, absl::Seconds(10))) {
      for (const pid_t agent : Agents()) kill(agent, SIGKILL);
    }
    RemoveRings();
  }

  // Of writers that no agent comes for any more: the next one of this root would.
  void RemoveRings() const {
    std::error_code error;
    for (const auto& rings :
         fs::directory_iterator(absl::StrCat("/dev/shm/stepwell-", geteuid()), error)) {
      const std::string writer = ReadText(rings.path() / "spool");
      if (writer.rfind(root() + "/", 0) == 0) fs::remove_all(rings.path(), error);
    }
  }

  std::string temporary() const { return scratch_ / "tmp"; }
  std::string root() const { return absl::StrCat(temporary(), "/stepwell-", geteuid()); }

  std::map<std::string, std::string> Environment(const std::string& trial,
                                                 std::map<std::string, std::string> more = {}) {
    more.insert({{"STEPWELL_AGENT", ""},  // as if it were not set
                 {"STEPWELL_AGENT_IDLE_EXIT", "1"},
                 {"STEPWELL_SERVER", master_->grpc_address()},
                 {"STEPWELL_SYSTEM_ROOT", "/no/such/root"},
                 {"STEPWELL_TRIAL", trial},
                 {"TMPDIR", temporary()}});
    return more;
  }
  std::vector<std::string> Trial(const std::string& end, int count, double seconds = 0) const {
    return {BuiltProgram("small_trial"), end, absl::StrCat(count), absl::StrCat(seconds)};
  }
  // Runs it to its end: how it ended. What it said must be its own words.
  std::string Run(const std::vector<std::string>& words,
                  const std::map<std::string, std::string>& environment) {
    const std::string log = scratch_ / absl::StrCat("trial-", ++run_count_);
    ChildProcess trial;
    trial.Start(words, environment, log);
    const std::string ending = trial.Wait(absl::Seconds(60));
    EXPECT_THAT(ReadText(log), ::testing::AnyOf("trained\nwarned\n", "warned\ntrained\n",
                                                // of both lives of a trial that becomes another
                                                "trained\nwarned\ntrained\nwarned\n",
                                                "warned\ntrained\nwarned\ntrained\n"));
    return ending;
  }

  // Processes that serve the root, or try to.
  std::vector<pid_t> Agents() const {
    std::vector<pid_t> agents;
    for (const auto& process : fs::directory_iterator("/proc")) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(process.path().filename().string(), &pid)) continue;
      const std::string words = ReadText(process.path() / "cmdline");
      if (words.find(root() + std::string(1, '\0')) != std::string::npos &&
          words.find("--on-demand") != std::string::npos) {
        agents.push_back(pid);
      }
    }
    return agents;
  }
  // The one that serves, as its lock says; 0 = none.
  pid_t Serving() const { return HolderOf(root()); }
  static pid_t HolderOf(const std::string& spool_root) {
    const int fd = open((spool_root + "/f1/agent.lock").c_str(), O_RDONLY | O_CLOEXEC);
    struct flock asked {};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    asked.l_len = 1;
    const bool is_held = fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
    close(fd);
    return is_held ? asked.l_pid : 0;
  }
  std::string AgentLog() const { return ReadText(root() + "/f1/agent.log"); }

  // How often each number was stored for the trial.
  std::map<double, int> Stored(const std::string& trial) {
    EXPECT_TRUE(client_->Flush().ok());
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows = (*connection)
                          ->Exec(
                              "select value from stepwell.samples((select trial_id from "
                              "stepwell.trials where external_id = $1), 'start', 'numbered')",
                              {trial});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::map<double, int> stored;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) ++stored[rows->Float64(row, 0)];
    return stored;
  }
  // Of the samples of free memory that the trial has.
  std::vector<std::int64_t> MachineTimes(const std::string& trial) {
    EXPECT_TRUE(client_->Flush().ok());
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows = (*connection)
                          ->Exec(
                              "select \"timestamp\" from stepwell.samples((select trial_id from "
                              "stepwell.trials where external_id = $1), 'memory', 'memory_free')",
                              {trial});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<std::int64_t> times_us;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      times_us.push_back(rows->TimestampUs(row, 0));
    }
    return times_us;
  }
  // Each number below `count` so often, and nothing else.
  bool IsStored(const std::string& trial, int count, int times = 1) {
    const std::map<double, int> stored = Stored(trial);
    return std::cmp_equal(stored.size(), count) &&
           std::all_of(stored.begin(), stored.end(), [&](const auto& entry) {
             return entry.first >= 0 && entry.first < count && entry.second == times;
           });
  }
  bool BecomesStored(const std::string& trial, int count, int times = 1) {
    return Eventually([&] { return IsStored(trial, count, times); }, absl::Seconds(30));
  }

  int run_count_ = 0;
};

TEST_F(StartedAgentTest, AgentRule10_AShortRunIsStoredWholeWhenItEnds) {
  const absl::Time begin = absl::Now();
  EXPECT_EQ(Run(Trial("return", 1000, 0.05), Environment("short")), "exit 7");
  const absl::Duration took = absl::Now() - begin;
  // No patience: it was stored when the trial had ended.
  EXPECT_TRUE(IsStored("short", 1000)) << AgentLog();
  EXPECT_LE(took, absl::Seconds(5));
  RecordProperty("took_ms", static_cast<int>(absl::ToInt64Milliseconds(took)));
  std::printf("a run of 50 ms with its agent's start, the master's ack and the exit: %lld ms\n",
              static_cast<long long>(absl::ToInt64Milliseconds(took)));

  // The second finds the agent there.
  EXPECT_EQ(Run(Trial("close", 10), Environment("next")), "exit 7");
  EXPECT_TRUE(IsStored("next", 10)) << AgentLog();
}

// Its agent comes when it is as good as over, and goes as it would have gone.
TEST_F(StartedAgentTest, AgentRule10_ARunOfAMomentHasASampleOfTheMachine) {
  const std::int64_t begin_us = absl::ToUnixMicros(absl::Now());
  for (const std::string trial : {"with-its-agents-start", "with-an-agent-there"}) {
    EXPECT_EQ(Run(Trial("return", 100, 0.05), Environment(trial)), "exit 7");
    EXPECT_TRUE(Eventually([&] { return !MachineTimes(trial).empty(); }, absl::Seconds(20)))
        << trial << AgentLog();
    for (const std::int64_t time_us : MachineTimes(trial)) {
      EXPECT_GE(time_us, begin_us);
      EXPECT_LE(time_us, absl::ToUnixMicros(absl::Now()));
    }
    EXPECT_TRUE(IsStored(trial, 100)) << AgentLog();
  }
  EXPECT_TRUE(Eventually([this] { return Agents().empty(); }, absl::Seconds(20))) << AgentLog();
  EXPECT_EQ(std::count_if(fs::directory_iterator(root() + "/f1"), {},
                          [](const auto& entry) { return entry.is_directory(); }),
            0)
      << "all of it is stored and gone";
}

TEST_F(StartedAgentTest, AgentRule09_AnIdleAgentLeavesNoProcess) {
  EXPECT_EQ(Run(Trial("close", 10), Environment("idle")), "exit 7");
  EXPECT_EQ(Agents().size(), 1u);
  EXPECT_TRUE(Eventually([this] { return Agents().empty(); }, absl::Seconds(20))) << AgentLog();
  // One that starts again as soon as it is needed.
  EXPECT_EQ(Run(Trial("close", 20), Environment("again")), "exit 7");
  EXPECT_TRUE(IsStored("again", 20));
}

TEST_F(StartedAgentTest, AgentRule08_EightRanksThatStartAtOnceShareOneAgent) {
  constexpr int kRanks = 8;
  std::vector<ChildProcess> ranks(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks[rank].Start(Trial("close", 500, 2),
                      Environment("ranks", {{"RANK", absl::StrCat(rank)},
                                            {"WORLD_SIZE", absl::StrCat(kRanks)},
                                            {"STEPWELL_ATTEMPT_KEY", "one"},
                                            {"STEPWELL_AGENT_IDLE_EXIT", "5"}}),
                      scratch_ / absl::StrCat("rank-", rank));
  }
  for (ChildProcess& rank : ranks) EXPECT_EQ(rank.Wait(absl::Seconds(60)), "exit 7");
  EXPECT_EQ(Agents().size(), 1u) << "of all that were started one is left";
  EXPECT_TRUE(IsStored("ranks", 500, kRanks)) << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule08_APipelineEndsWithTheTrial) {
  const std::string log = scratch_ / "piped";
  ChildProcess shell;
  shell.Start({"/bin/sh", "-c", BuiltProgram("small_trial") + " close 100 2>&1 | cat"},
              Environment("piped", {{"STEPWELL_AGENT_IDLE_EXIT", "6"}}), log);
  EXPECT_EQ(shell.Wait(absl::Seconds(30)), "exit 0");
  EXPECT_EQ(Agents().size(), 1u) << "it lives on, and holds nobody";
  EXPECT_TRUE(IsStored("piped", 100)) << ReadText(log) << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule08_ADeadAgentIsReplacedWithinTwoSecondsAndNothingIsLost) {
  constexpr int kKills = 3;
  ChildProcess trial;
  trial.Start(Trial("close", 20'000, 12), Environment("killed"), scratch_ / "trial");
  pid_t killed = 0;
  std::size_t stored_before = 0;
  absl::Time since;
  for (int i = 0; i < kKills; ++i) {
    ASSERT_TRUE(
        Eventually([&] { return Serving() != 0 && Serving() != killed; }, absl::Seconds(10)))
        << AgentLog();
    if (i > 0) {
      const absl::Duration took = absl::Now() - since;
      EXPECT_LE(took, absl::Seconds(2));
      std::printf("replaced after %lld ms\n",
                  static_cast<long long>(absl::ToInt64Milliseconds(took)));
    }
    // It has taken up the trial's samples.
    ASSERT_TRUE(
        Eventually([&] { return Stored("killed").size() > stored_before; }, absl::Seconds(10)))
        << AgentLog();
    ASSERT_TRUE(trial.running());
    killed = Serving();
    stored_before = Stored("killed").size();
    since = absl::Now();
    kill(killed, SIGKILL);
  }
  EXPECT_EQ(trial.Wait(absl::Seconds(60)), "exit 7") << ReadText(scratch_ / "trial");
  EXPECT_TRUE(IsStored("killed", 20'000)) << Stored("killed").size() << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule08_ATrialMeetsNoStrangeChild) {
  EXPECT_EQ(Run(Trial("children", 100, 2), Environment("parent")), "exit 7");
  EXPECT_TRUE(IsStored("parent", 100));
}

TEST_F(StartedAgentTest, AgentRule11_EndsOfEachKindLoseNothing) {
  // It lives for some milliseconds.
  EXPECT_EQ(Run(Trial("_exit", 5000), Environment("left")), "exit 7");
  EXPECT_TRUE(BecomesStored("left", 5000)) << Stored("left").size() << "\n" << AgentLog();
  EXPECT_EQ(Run(Trial("exec", 300), Environment("other")), "exit 7");
  EXPECT_TRUE(BecomesStored("other", 300, 2)) << Stored("other").size() << AgentLog();
  EXPECT_EQ(Run(Trial("daemon", 400), Environment("daemon")), "exit 7");
  EXPECT_TRUE(BecomesStored("daemon", 400, 2)) << Stored("daemon").size() << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule09_OfflineNothingIsSentUntilItIsUploaded) {
  const absl::Time begin = absl::Now();
  EXPECT_EQ(Run(Trial("return", 200), Environment("offline", {{"STEPWELL_OFFLINE", "1"}})),
            "exit 7");
  EXPECT_LE(absl::Now() - begin, absl::Seconds(4)) << "there is no ack to wait for";
  EXPECT_TRUE(Eventually([this] { return Agents().empty(); }, absl::Seconds(20))) << AgentLog();
  EXPECT_TRUE(Stored("offline").empty());
  ChildProcess upload;
  const std::string log = scratch_ / "upload";
  upload.Start({BuiltProgram("stepwell"), "upload", root(), "--server", master_->grpc_address()},
               {}, log);
  EXPECT_EQ(upload.Wait(absl::Seconds(60)), "exit 0") << ReadText(log);
  EXPECT_TRUE(IsStored("offline", 200)) << ReadText(log);
}

TEST_F(StartedAgentTest, AgentRule07_WhereASystemAgentServesTheTrialStartsNone) {
  if (geteuid() != 0) GTEST_SKIP() << "a system agent is root's";
  const std::string system = scratch_ / "run";
  ChildProcess agent;
  agent.Start({BuiltProgram("stepwell"), "agent", "--system", "--server", master_->grpc_address()},
              {{"STEPWELL_SYSTEM_ROOT", system}}, scratch_ / "system-agent");
  ASSERT_TRUE(Eventually([&] { return HolderOf(system) != 0; }, absl::Seconds(20)))
      << ReadText(scratch_ / "system-agent");
  EXPECT_EQ(Run(Trial("close", 300), Environment("served", {{"STEPWELL_SYSTEM_ROOT", system}})),
            "exit 7");
  EXPECT_TRUE(IsStored("served", 300)) << ReadText(scratch_ / "system-agent");
  EXPECT_FALSE(fs::exists(root())) << "it lies below the system's";
  EXPECT_TRUE(fs::exists(system + "/u0/f1"));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(absl::Seconds(20)), "exit 0");
  // Without it the trial helps itself.
  EXPECT_EQ(Run(Trial("close", 200), Environment("own", {{"STEPWELL_SYSTEM_ROOT", system}})),
            "exit 7");
  EXPECT_TRUE(IsStored("own", 200)) << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule17_AReadOnlyRootAndNoHomeAreEnough) {
  const std::string script =
      absl::StrCat("mount -t tmpfs -o size=64m,mode=1777 tmpfs ", temporary(),
                   " && mount -o remount,ro,bind / || exit 77\n", "unset HOME\nexec ",
                   BuiltProgram("small_trial"), " close 1000 1\n");
  ChildProcess trial;
  trial.Start({"/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script},
              Environment("bare"), scratch_ / "bare");
  const std::string ending = trial.Wait(absl::Seconds(60));
  if (ending == "exit 77" || ending == "exit 1") GTEST_SKIP() << "no mounts of one's own here";
  EXPECT_EQ(ending, "exit 7") << ReadText(scratch_ / "bare");
  EXPECT_TRUE(IsStored("bare", 1000));
}

}  // namespace
}  // namespace stepwell::testing
