// Where secrets must not turn up: the log, `ps`, the environments of children, answers, core files.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/tls/tls_authority.h"
#include "tests/e2e/core_files.h"
#include "tests/e2e/startup.h"
#include "tests/support/loopback.h"
#include "tests/support/others.h"
#include "tests/support/scratch_directory.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Of a process and all that it started.
std::vector<int> Family(int pid) {
  std::vector<int> family = {pid};
  for (std::size_t i = 0; i < family.size(); ++i) {
    const std::string tasks = absl::StrCat("/proc/", family[i], "/task");
    std::error_code gone;
    for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
      std::ifstream children(task.path() / "children");
      for (int child = 0; children >> child;) family.push_back(child);
    }
  }
  return family;
}

class SecretsTest : public StartupTest {
 protected:
  void WriteCertificates() {
    const absl::Time now = absl::Now() - absl::Hours(1);
    const TlsAuthority ca = *TlsAuthority::Make("ca", now, now + absl::Hours(9));
    const TlsPair server =
        *ca.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now, now + absl::Hours(9)});
    std::ofstream(scratch_ / "ca.pem") << ca.own().cert_pem;
    std::ofstream(scratch_ / "server.pem") << server.cert_pem;
    std::ofstream(scratch_ / "server.key") << server.key_pem;
  }
  // Adds to the file what was answered.
  int Curl(const std::vector<std::string>& more, const std::string& file = "answers") {
    std::vector<std::string> words = {"/usr/bin/curl", "--silent",          "--max-time", "30",
                                      "--cacert",      scratch_ / "ca.pem", "--include"};
    words.insert(words.end(), more.begin(), more.end());
    ChildProcess curl;
    curl.Start(words, {}, scratch_ / file);
    return curl.Wait(absl::Seconds(60)) == "exit 0" ? 0 : 1;
  }
};

TEST_F(SecretsTest, ATokenIsInItsFileAlone) {
  WriteCertificates();
  StartMaster({"--tls-cert", scratch_ / "server.pem", "--tls-key", scratch_ / "server.key",
               "--token-file", scratch_ / "token", "--log-level", "debug"});
  std::string token;
  std::ifstream(scratch_ / "token") >> token;
  ASSERT_GE(token.size(), 32u);
  const std::string https = absl::StrCat("https://", master_->http_address());
  const std::string query = https + "/stepwell.v1.QueryService/ListTrials";
  EXPECT_EQ(Curl({"--oauth2-bearer", token, "--json", "{}", query}), 0);
  EXPECT_EQ(Curl({"--oauth2-bearer", token + "0", "--json", "{}", query}), 0);
  EXPECT_EQ(Curl({"--oauth2-bearer", token, "--json", "nonsense", query}), 0);
  EXPECT_EQ(Curl({"--oauth2-bearer", token, https + "/no/such?" + token.substr(0, 3)}), 0);
  EXPECT_EQ(Curl({"--oauth2-bearer", token, https + "/metrics"}), 0);
  EXPECT_THAT(ReadAll(scratch_ / "answers"), Not(HasSubstr(token)));

  // One that the master makes is in one answer, and kept as its digest alone.
  EXPECT_EQ(Curl({"--oauth2-bearer", token, "--json", R"({"name":"made","grants":["read:*"]})",
                  https + "/stepwell.v1.TokenService/CreateToken"},
                 "created"),
            0);
  const std::string created = ReadAll(scratch_ / "created");
  std::filesystem::remove(scratch_ / "created");
  const std::size_t begin = created.find("\"stepwell_") + 1;
  ASSERT_NE(begin, 0u) << created;
  const std::string made = created.substr(begin, created.find('"', begin) - begin);
  const std::string secret = made.substr(made.find('_', made.find('_') + 1) + 1);
  ASSERT_GE(secret.size(), 32u);
  EXPECT_EQ(Curl({"--oauth2-bearer", made, "--json", "{}", query}), 0);
  EXPECT_EQ(Curl({"--oauth2-bearer", made + "0", "--json", "{}", query}), 0);
  EXPECT_EQ(Curl({"--oauth2-bearer", token, "--json", "{}",
                  https + "/stepwell.v1.TokenService/ListTokens"}),
            0);
  EXPECT_THAT(ReadAll(scratch_ / "answers"), HasSubstr("\"made\""));
  EXPECT_THAT(ReadAll(scratch_ / "answers"), Not(HasSubstr(secret)));
  const std::vector<int> family = Family(master_->pid());
  ASSERT_GE(family.size(), 3u) << "its PostgreSQL";
  for (const int pid : family) {
    for (const char* file : {"cmdline", "environ"}) {
      const std::string text = ReadAll(absl::StrCat("/proc/", pid, "/", file));
      EXPECT_THAT(text, Not(HasSubstr(token)));
      // The master's environment is for root's eyes alone; of PostgreSQL's processes some end meanwhile.
      const bool may_read = geteuid() == 0 || file == std::string_view("cmdline");
      if (pid == family[0] && may_read) {
        EXPECT_NE(text, "") << file << " can be looked at";
      }
    }
  }
  EXPECT_EQ(master_->Stop(), "exit 0");
  EXPECT_EQ(master_->CountInLog(token), 0);
  EXPECT_EQ(master_->CountInLog(secret), 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_.path())) {
    if (!entry.is_regular_file() || entry.path() == scratch_ / "token") continue;
    const std::string text = ReadAll(entry.path());
    EXPECT_FALSE(absl::StrContains(text, token)) << entry.path();
    EXPECT_FALSE(absl::StrContains(text, secret)) << entry.path();
  }
}

TEST_F(SecretsTest, NoVariableOfTheMastersReachesItsPostgres) {
  ChildProcess serve;
  std::vector<std::string> words = {program_, "serve", "--data-dir", scratch_ / "data"};
  words.insert(words.end(), anywhere_.begin(), anywhere_.end());
  serve.Start(words, {{"STEPWELL_TOKEN", "of-this-shell"}, {"PGPASSWORD", "hidden-one"}},
              scratch_ / "log");
  ASSERT_TRUE(Eventually([&] { return access((scratch_ / "data/ready.json").c_str(), F_OK) == 0; },
                         absl::Seconds(60)))
      << ReadAll(scratch_ / "log");
  std::vector<int> family = Family(serve.pid());
  ASSERT_GE(family.size(), 3u);
  EXPECT_THAT(ReadAll(absl::StrCat("/proc/", family[0], "/environ")), HasSubstr("of-this-shell"))
      << "the test looks where it would be";
  family.erase(family.begin());
  for (const int pid : family) {
    const std::string environment = ReadAll(absl::StrCat("/proc/", pid, "/environ"));
    EXPECT_THAT(environment, Not(HasSubstr("of-this-shell")));
    EXPECT_THAT(environment, Not(HasSubstr("hidden-one")));
  }
  serve.Signal(SIGTERM);
  EXPECT_EQ(serve.Wait(absl::Seconds(60)), "exit 0");
}

// Clients as a user starts them: what they were told, and what lies in their memory, is not for others of the machine, nor for
// what else the user runs.
class ClientSecretsTest : public ::testing::Test {
 protected:
  static constexpr char kToken[] = "stepwell_0123456789ab_a-secret-that-nobody-else-may-see";
  void SetUp() override {
    if (geteuid() != 0) return;
    if (const std::string closed = ClosedToOthers(); !closed.empty()) {
      GTEST_SKIP() << "others cannot pass " << closed;
    }
    ASSERT_EQ(chown(scratch_.path().c_str(), 65534, 65534), 0);
  }
  using Words = std::vector<std::string>;
  using Variables = std::map<std::string, std::string>;
  // By a user without any right.
  void Start(ChildProcess& child, Words words, const Variables& variables = {}) {
    if (geteuid() == 0) {
      const char* nobody[] = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                              "--clear-groups"};
      words.insert(words.begin(), std::begin(nobody), std::end(nobody));
    }
    child.Start(words, variables, scratch_ / absl::StrCat("log-", ++count_));
  }
  // Whether another process of the same user reads what it was started with, which its memory is guarded as.
  bool IsOpen(const ChildProcess& child) {
    ChildProcess reader;
    Start(reader, {"/usr/bin/head", "-c", "1", absl::StrCat("/proc/", child.pid(), "/environ")});
    return reader.Wait(absl::Seconds(30)) == "exit 0";
  }
  bool CloseSoon(const ChildProcess& child) {
    return Eventually([&] { return !IsOpen(child); }, absl::Seconds(20));
  }
  static std::string Shown(const ChildProcess& child) {
    return absl::StrReplaceAll(ReadAll(absl::StrCat("/proc/", child.pid(), "/cmdline")),
                               {{std::string(1, '\0'), " "}});
  }
  void StartAgent(ChildProcess& agent, const std::string& spool, const Words& more,
                  const Variables& variables) {
    // It may write core files, as far as it is concerned.
    const std::string begin = absl::StrCat("cd ", scratch_.path(), "; ulimit -c unlimited; ");
    Words words = {"/bin/sh",
                   "-c",
                   begin + "exec \"$@\"",
                   "sh",
                   BuiltProgram("stepwell"),
                   "agent",
                   "--spool-dir",
                   spool,
                   "--server",
                   "127.0.0.1:1"};
    words.insert(words.end(), more.begin(), more.end());
    Start(agent, words, variables);
    shown_meanwhile_ = Shown(agent);
    EXPECT_TRUE(Eventually(
        [&] {
          absl::StrAppend(&shown_meanwhile_, Shown(agent));
          return access((spool + "/f1/agent.lock").c_str(), F_OK) == 0;
        },
        absl::Seconds(20)));
  }

  // How an agent may be told a token, and whether its memory is open then.
  struct Told {
    const char* name;
    Words more;
    Variables variables;
    bool is_open;
  };
  static std::vector<Told> Tellings() {
    return {{"none", {}, {}, true},
            {"variable", {}, {{"STEPWELL_TOKEN", kToken}}, false},
            {"option", {"--trial", "t", "--token", kToken}, {}, false},
            {"one-word", {"--trial", "t", absl::StrCat("--token=", kToken)}, {}, false}};
  }

  const ScratchDirectory scratch_;
  int count_ = 0;
  // What `ps` showed of the agent while it started.
  std::string shown_meanwhile_;
};

TEST_F(ClientSecretsTest, AnAgentsTokenIsNotInPsAndItsMemoryIsItsOwn) {
  for (const Told& row : Tellings()) {
    SCOPED_TRACE(row.name);
    ChildProcess agent;
    StartAgent(agent, scratch_ / absl::StrCat("spool-", row.name), row.more, row.variables);
    if (row.is_open) {
      EXPECT_TRUE(IsOpen(agent)) << "this test reads where it may";
    } else {
      EXPECT_TRUE(CloseSoon(agent));
    }
    EXPECT_THAT(Shown(agent), Not(HasSubstr("a-secret-that")));
    EXPECT_THAT(Shown(agent), HasSubstr("--spool-dir"));
    if (row.more.empty()) {
      EXPECT_THAT(shown_meanwhile_, Not(HasSubstr("a-secret-that"))) << "from its start on";
    }
    agent.Kill();
  }
}

TEST_F(ClientSecretsTest, AnAgentWithATokenLeavesNoCoreFile) {
  if (const std::string why = WhyNoCoreFiles(); !why.empty()) GTEST_SKIP() << why;
  for (const Told& row : Tellings()) {
    SCOPED_TRACE(row.name);
    ChildProcess agent;
    StartAgent(agent, scratch_ / absl::StrCat("spool-", row.name), row.more, row.variables);
    EXPECT_TRUE(row.is_open ? IsOpen(agent) : CloseSoon(agent));
    agent.Signal(SIGABRT);
    EXPECT_EQ(agent.Wait(absl::Seconds(30)), "killed by signal 6");
    EXPECT_EQ(TakeCoreFile(scratch_.path()), row.is_open);
  }
}

TEST(CoreFilesTest, AreNotLookedForWhereTheKernelPutsNone) {
  const struct {
    const char* pattern;
    bool is_here;
  } rows[] = {
      {"core", true},     {"core.%p", true},        {"", false},
      {"%e.core", false}, {"/var/crash/%p", false}, {"|/usr/share/apport/apport -p%p", false}};
  for (const auto& row : rows) {
    EXPECT_EQ(WhyNoCoreFiles(row.pattern).empty(), row.is_here) << row.pattern;
  }
}

// It acts for other users in turn, by which a kernel forgets what it was told of core files.
TEST_F(ClientSecretsTest, AnAgentOfAllUsersIsClosedWhateverItWasStartedWith) {
  if (geteuid() != 0) GTEST_SKIP() << "only root starts one";
  ChildProcess agent;
  agent.Start({BuiltProgram("stepwell"), "agent", "--system", "--server", "127.0.0.1:1"},
              {{"STEPWELL_SYSTEM_ROOT", scratch_ / "system"}}, scratch_ / "log-of-root");
  const auto limit = [&] { return ReadAll(absl::StrCat("/proc/", agent.pid(), "/limits")); };
  EXPECT_TRUE(Eventually(
      [&] { return ::testing::Matches(::testing::ContainsRegex("core file size +1 "))(limit()); },
      absl::Seconds(20)))
      << limit();
  agent.Kill();
}

// A training is left as it is: who may look into it may still.
TEST_F(ClientSecretsTest, AnAgentThatIsToldAWritersTokenHidesItAndItsTrainingIsAsItWas) {
  const std::string spool = scratch_ / "spool";
  ChildProcess agent;
  StartAgent(agent, spool, {}, {});
  ASSERT_TRUE(IsOpen(agent));
  ChildProcess training;
  Start(
      training,
      {BuiltProgram("fault_trainer"), "--trial", "t", "--spool-dir", spool, "--log",
       scratch_ / "ledger", "--steps", "3000", "--rate", "50"},
      {{"TRAINER_TOKEN", kToken}, {"STEPWELL_TOKEN", kToken}, {"STEPWELL_SERVER", "127.0.0.1:1"}});
  EXPECT_TRUE(CloseSoon(agent));
  EXPECT_TRUE(IsOpen(training));
  training.Kill();
  agent.Kill();
}

TEST_F(ClientSecretsTest, WhatRunStartsIsAsItWouldBeWithoutIt) {
  ChildProcess training;
  Start(training, {BuiltProgram("stepwell"), "run", "--", "/bin/sleep", "600"},
        {{"STEPWELL_TOKEN", kToken}});
  ASSERT_TRUE(Eventually([&] { return absl::StartsWith(Shown(training), "/bin/sleep"); },
                         absl::Seconds(20)));
  EXPECT_TRUE(IsOpen(training));
  training.Kill();
}

TEST_F(ClientSecretsTest, ACommandsMemoryIsItsOwnWhereItHasAToken) {
  const SilentListener silent;  // who asks it waits for some seconds
  const Words words = {BuiltProgram("stepwell"), "trials", "--server",
                       absl::StrCat("127.0.0.1:", silent.port())};
  for (const bool has_token : {false, true}) {
    SCOPED_TRACE(has_token);
    bool is_right = false;
    // Again where it ended before it was looked at: it waits, but not forever.
    ASSERT_TRUE(Eventually(
        [&] {
          ChildProcess command;
          Start(command, words, has_token ? Variables{{"STEPWELL_TOKEN", kToken}} : Variables{});
          // Not while it is still what changes the user, which nobody may look into.
          const auto is_it = [&] { return absl::StartsWith(Shown(command), words[0]); };
          if (!Eventually([&] { return is_it() || !command.running(); }, absl::Seconds(20))) {
            return false;
          }
          is_right = has_token ? CloseSoon(command) : IsOpen(command);
          return command.running();
        },
        absl::Seconds(60)))
        << "each ended before it was looked at, or was not closed until then";
    EXPECT_TRUE(is_right);
  }
}

}  // namespace
}  // namespace stepwell::testing
