// deploy/systemd: what its units start is what `stepwell` takes, with no more rights than they leave, and
// systemd's own look at them finds little to say.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/e2e/startup.h"
#include "tests/support/others.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

// docs/security.md names them.
constexpr char kMaster[] = "stepwell.service";
constexpr char kAgent[] = "stepwell-agent.service";
constexpr int kMasterScoreMax = 15;  // 1.5
constexpr int kAgentScoreMax = 36;
// nobody's, on Debian: the master's user is made by sysusers.
constexpr unsigned kUser = 65534;

class ServiceUnitTest : public StartupTest {
 protected:
  void SetUp() override {
    if (access("/usr/bin/systemd-analyze", X_OK) != 0) GTEST_SKIP() << "systemd is not installed";
    for (const char* unit : {kMaster, kAgent}) {
      std::ofstream(scratch_ / unit)
          << absl::StrReplaceAll(ReadAll(SourcePlace(absl::StrCat("deploy/systemd/", unit))),
                                 {{"/usr/bin/stepwell", BuiltProgram("stepwell")}});
    }
  }
  std::string Run(const Words& words, const std::map<std::string, std::string>& environment = {}) {
    const std::string log = scratch_ / absl::StrCat("ran-", ++count_);
    ChildProcess child;
    child.Start(words, environment, log);
    const std::string ending = child.Wait(absl::Seconds(60));
    said_ = ReadAll(log);
    return ending;
  }
  std::string Score(const std::string& unit, int score_max) {
    return Run({"/usr/bin/systemd-analyze", "security", "--offline=true", "--no-pager",
                absl::StrCat("--threshold=", score_max), scratch_ / unit});
  }
  // What a unit says of a key, one after the other.
  Words Values(const std::string& unit, const std::string& key) const {
    Words values;
    for (absl::string_view line : absl::StrSplit(ReadAll(scratch_ / unit), '\n')) {
      if (absl::ConsumePrefix(&line, key + "=")) values.emplace_back(line);
    }
    return values;
  }
  std::set<std::string> Calls(const std::string& set) {
    EXPECT_EQ(Run({"/usr/bin/systemd-analyze", "syscall-filter", "--no-pager", set}), "exit 0");
    std::set<std::string> calls;
    std::istringstream lines(said_);
    for (std::string line; std::getline(lines, line);) {
      const std::string name(absl::StripAsciiWhitespace(line));
      if (line[0] != ' ' || name.empty() || name[0] == '#') continue;
      if (name[0] == '@') {
        calls.merge(Calls(name));
      } else {
        calls.insert(name);
      }
    }
    return calls;
  }
  // Those that a unit's filter lets through, as systemd.exec(5) reads its lines one after the other.
  std::set<std::string> AllowedCalls(const std::string& unit) {
    std::set<std::string> allowed = Calls("@default");
    for (const std::string& value : Values(unit, "SystemCallFilter")) {
      const bool is_taken_away = value[0] == '~';
      for (const auto& name : absl::StrSplit(value.substr(is_taken_away ? 1 : 0), ' ')) {
        for (const std::string& call : Calls(std::string(name))) {
          if (is_taken_away) {
            allowed.erase(call);
          } else {
            allowed.insert(call);
          }
        }
      }
    }
    return allowed;
  }
  // The words of ExecStart, with what they name put into the scratch directory.
  Words Start(const std::string& unit) const {
    const Words lines = Values(unit, "ExecStart");
    EXPECT_EQ(lines.size(), 1u);
    return absl::StrSplit(
        absl::StrReplaceAll(lines.at(0), {{"/etc/stepwell", SourcePlace("deploy/systemd")},
                                          {"/var/lib/stepwell", scratch_ / "state"}}),
        ' ');
  }
  // `words` under the unit's rights: another user, no capabilities but its own, and each call that its filter
  // refuses is refused by strace, which writes them into the log.
  Words Restricted(const std::string& unit, const Words& words, const Words& rights) {
    const std::string refused = absl::StrCat("!?", absl::StrJoin(AllowedCalls(unit), ",?"));
    Words all = {"/usr/bin/setpriv", "--no-new-privs", "--clear-groups"};
    all.insert(all.end(), rights.begin(), rights.end());
    all.insert(all.end(), {"/usr/bin/strace", "--follow-forks", "--seccomp-bpf",
                           "--trace=" + refused, "--inject=" + refused + ":error=EPERM"});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
};

TEST_F(ServiceUnitTest, SystemdFindsLittleToSay) {
  for (const auto& [unit, score_max] :
       {std::pair(kMaster, kMasterScoreMax), std::pair(kAgent, kAgentScoreMax)}) {
    SCOPED_TRACE(unit);
    EXPECT_EQ(Run({"/usr/bin/systemd-analyze", "verify", "--man=no", scratch_ / unit}), "exit 0");
    EXPECT_EQ(said_, "");
    EXPECT_EQ(Score(unit, score_max), "exit 0") << said_;
  }
  // It would tell a weaker one.
  std::ofstream(scratch_ / kMaster, std::ios::app)
      << "[Service]\nCapabilityBoundingSet=CAP_SYS_ADMIN\n"
         "ProtectSystem=no\nNoNewPrivileges=no\n";
  EXPECT_EQ(Score(kMaster, kMasterScoreMax), "exit 1") << said_;
}

TEST_F(ServiceUnitTest, TheMasterStartsAsItsUnitSaysAndStopsInOrder) {
  if (geteuid() != 0) GTEST_SKIP() << "another user's rights are root's to give";
  if (const std::string closed = ClosedToOthers(); !closed.empty()) {
    GTEST_SKIP() << "others cannot pass " << closed;
  }
  mkdir((scratch_ / "state").c_str(), 0700);
  ASSERT_EQ(chown((scratch_ / "state").c_str(), kUser, kUser), 0);
  const Words words = Restricted(kMaster, Start(kMaster),
                                 {absl::StrCat("--reuid=", kUser), absl::StrCat("--regid=", kUser),
                                  "--bounding-set=-all", "--inh-caps=-all"});
  ChildProcess master;
  master.Start(words,
               {{"STEPWELL_GRPC_LISTEN", "127.0.0.1:0"}, {"STEPWELL_HTTP_LISTEN", "127.0.0.1:0"}},
               scratch_ / "log");
  const bool is_ready = Eventually(
      [&] {
        return access((scratch_ / "state/ready.json").c_str(), F_OK) == 0 || !master.running();
      },
      absl::Seconds(120));
  ASSERT_TRUE(is_ready && master.running()) << ReadAll(scratch_ / "log");
  struct stat made {};
  ASSERT_EQ(stat((scratch_ / "state/ready.json").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, kUser);
  // strace hands it on.
  const std::string ready = ReadAll(scratch_ / "state/ready.json");
  const auto pid = static_cast<pid_t>(std::stol(ready.substr(ready.find("\"pid\":") + 6)));
  ASSERT_EQ(kill(pid, SIGTERM), 0);
  EXPECT_EQ(master.Wait(absl::Seconds(90)), "exit 0") << ReadAll(scratch_ / "log");
}

TEST_F(ServiceUnitTest, TheAgentStartsAsItsUnitSaysAndStopsInOrder) {
  if (geteuid() != 0) GTEST_SKIP() << "another user's rights are root's to give";
  const Words capabilities = Values(kAgent, "CapabilityBoundingSet");
  ASSERT_EQ(capabilities.size(), 1u);
  const std::string bounding =
      "-all,+" + absl::StrReplaceAll(capabilities[0], {{"CAP_", ""}, {" ", ",+"}});
  ChildProcess agent;
  agent.Start(
      Restricted(kAgent, Start(kAgent), {"--bounding-set=" + absl::AsciiStrToLower(bounding)}),
      {{"STEPWELL_SYSTEM_ROOT", scratch_ / "root"}, {"STEPWELL_SERVER", "127.0.0.1:1"}},
      scratch_ / "log");
  EXPECT_TRUE(Eventually(
      [&] {
        return access((scratch_ / "root/f1/agent.lock").c_str(), F_OK) == 0 || !agent.running();
      },
      absl::Seconds(60)));
  EXPECT_TRUE(agent.running()) << ReadAll(scratch_ / "log");
  struct stat root {};
  ASSERT_EQ(stat((scratch_ / "root").c_str(), &root), 0) << ReadAll(scratch_ / "log");
  EXPECT_EQ(root.st_mode & 07777, 01733u);
  EXPECT_THAT(Values(kAgent, "RuntimeDirectoryMode"), ::testing::ElementsAre("1733"));
  // strace hands no signal on: the agent is its child.
  const std::string children =
      ReadAll(absl::StrCat("/proc/", agent.pid(), "/task/", agent.pid(), "/children"));
  ASSERT_FALSE(children.empty());
  ASSERT_EQ(kill(static_cast<pid_t>(std::stol(children)), SIGTERM), 0);
  EXPECT_EQ(agent.Wait(absl::Seconds(30)), "exit 0") << ReadAll(scratch_ / "log");
}

}  // namespace
}  // namespace stepwell::testing
