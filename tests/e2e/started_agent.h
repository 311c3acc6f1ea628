// StartedAgentTest: trials that bring their agent with them, and what is stored of them. No trial here
// is told of an agent; `stepwell` lies beside it.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {

// Of a process that ends meanwhile, what there was.
inline std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class StartedAgentTest : public SpineTest {
 protected:
  void SetUp() override {
    StartMaster();
    std::filesystem::create_directory(temporary());
    std::filesystem::permissions(temporary(),
                                 std::filesystem::perms(0777) | std::filesystem::perms::sticky_bit);
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
    for (const auto& rings : std::filesystem::directory_iterator(
             absl::StrCat("/dev/shm/stepwell-", geteuid()), error)) {
      const std::string writer = ReadText(rings.path() / "spool");
      if (writer.rfind(root() + "/", 0) == 0) std::filesystem::remove_all(rings.path(), error);
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
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
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
  // When the samples of a metric were taken, in order.
  std::vector<std::int64_t> TimesOf(const std::string& trial, const char* group, const char* name) {
    EXPECT_TRUE(client_->Flush().ok());
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows = (*connection)
                          ->Exec(
                              "select \"timestamp\" from stepwell.samples((select trial_id from "
                              "stepwell.trials where external_id = $1), $2, $3) order by 1",
                              {trial, group, name});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<std::int64_t> times_us;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      times_us.push_back(rows->TimestampUs(row, 0));
    }
    return times_us;
  }
  std::vector<std::int64_t> MachineTimes(const std::string& trial) {
    return TimesOf(trial, "memory", "memory_free");
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

}  // namespace stepwell::testing
