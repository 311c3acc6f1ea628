// What a master that was told a secret lets others of its machine see, by `ps` and in /proc: masters of a user without any
// right, which wait for a database that does not answer.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/tls/tls_authority.h"
#include "tests/e2e/core_files.h"
#include "tests/e2e/startup.h"
#include "tests/support/loopback.h"
#include "tests/support/others.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MasterSecretsTest : public StartupTest {
 protected:
  using Words = std::vector<std::string>;
  static constexpr char kUrl[] = "postgresql://app:p4ssw0rd@127.0.0.1:1/x";
  static constexpr char kBareUrl[] = "postgresql://app@127.0.0.1:1/x";
  void SetUp() override {
    if (geteuid() != 0) return;
    if (const std::string closed = ClosedToOthers(); !closed.empty()) {
      GTEST_SKIP() << "others cannot pass " << closed;
    }
    ASSERT_EQ(chown(scratch_.path().c_str(), 65534, 65534), 0);
  }
  void Start(ChildProcess& serve, const Words& more,
             const std::map<std::string, std::string>& variables = {}) {
    Words words = {program_, "serve"};
    if (geteuid() == 0) {
      const char* nobody[] = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                              "--clear-groups"};
      words.insert(words.begin(), std::begin(nobody), std::end(nobody));
    }
    words.insert(words.end(), anywhere_.begin(), anywhere_.end());
    words.insert(words.end(), more.begin(), more.end());
    log_ = scratch_ / absl::StrCat("log-", ++count_);
    serve.Start(words, variables, log_);
  }
  bool IsWaiting() const { return absl::StrContains(ReadAll(log_), "database_down"); }
  bool WaitsSoon() const {
    return Eventually([&] { return IsWaiting(); }, absl::Seconds(30));
  }
  static std::string Shown(const ChildProcess& serve) {
    return absl::StrReplaceAll(ReadAll(absl::StrCat("/proc/", serve.pid(), "/cmdline")),
                               {{std::string(1, '\0'), " "}});
  }
  bool IsMaster(const ChildProcess& serve) const {
    std::error_code error;
    return std::filesystem::equivalent(absl::StrCat("/proc/", serve.pid(), "/exe"), program_,
                                       error);
  }
  // What no core file may hold the kernel keeps from the process's own user, too.
  static uid_t Owner(const ChildProcess& serve) {
    struct stat found {};
    EXPECT_EQ(stat(absl::StrCat("/proc/", serve.pid(), "/environ").c_str(), &found), 0);
    return found.st_uid;
  }
  static void End(ChildProcess& serve) {
    serve.Signal(SIGTERM);
    EXPECT_EQ(serve.Wait(absl::Seconds(60)), "exit 0");
  }

  std::string log_;
};

TEST_F(MasterSecretsTest, APasswordOnTheCommandLineIsOverwritten) {
  ChildProcess serve;
  Start(serve, {"--database-url", kUrl});
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(Shown(serve), "app:********@127"); },
                         absl::Seconds(30)))
      << Shown(serve);
  EXPECT_TRUE(WaitsSoon()) << ReadAll(log_);
  EXPECT_THAT(ReadAll(log_), Not(HasSubstr("p4ssw0rd")));
  End(serve);
}

TEST_F(MasterSecretsTest, APasswordInAVariableOrAFileIsNeverInPs) {
  const std::string file = scratch_ / "stepwell.conf";
  std::ofstream(file) << "database-url = " << kUrl << "\n";
  const struct {
    const char* name;
    Words words;
    std::map<std::string, std::string> variables;
  } rows[] = {{"variable", {}, {{"STEPWELL_DATABASE_URL", kUrl}}},
              {"file", {"--config", file}, {}},
              {"file that a variable names", {}, {{"STEPWELL_CONFIG", file}}}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ChildProcess serve;
    Start(serve, row.words, row.variables);
    // From its start on: as long as the password would be overwritten, and beyond.
    std::string shown = Shown(serve);
    EXPECT_TRUE(Eventually(
        [&] {
          absl::StrAppend(&shown, Shown(serve));
          return IsWaiting();
        },
        absl::Seconds(30)))
        << ReadAll(log_);
    EXPECT_THAT(shown, HasSubstr("--grpc-listen"));
    EXPECT_THAT(shown, Not(HasSubstr("p4ssw0rd")));
    EXPECT_THAT(shown, Not(HasSubstr("app:"))) << "there was something to overwrite";
    EXPECT_THAT(ReadAll(log_), Not(HasSubstr("p4ssw0rd")));
    End(serve);
  }
}

TEST_F(MasterSecretsTest, TheMemoryOfAMasterWithASecretIsItsOwn) {
  const absl::Time now = absl::Now() - absl::Hours(1);
  const TlsAuthority ca = *TlsAuthority::Make("ca", now, now + absl::Hours(9));
  const TlsPair pair = *ca.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now, now + absl::Hours(9)});
  std::ofstream(scratch_ / "server.pem") << pair.cert_pem;
  std::ofstream(scratch_ / "server.key") << pair.key_pem;
  const Words tls = {"--tls-cert", scratch_ / "server.pem", "--tls-key", scratch_ / "server.key",
                     "--token-file"};
  Words no_token = tls, token = tls;
  no_token.push_back("none");
  token.push_back(scratch_ / "token");
  const uid_t own = geteuid() == 0 ? 65534 : geteuid();
  const struct {
    const char* name;
    Words words;
    const char* url;
    uid_t owner;
  } rows[] = {{"none", {"--data-dir", scratch_ / "data"}, "", own},
              {"a password", {}, kUrl, 0},
              {"a password that libpq finds elsewhere", {}, kBareUrl, 0},
              {"a TLS key", no_token, kBareUrl, 0},
              {"a token", token, kBareUrl, 0}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ChildProcess serve;
    Start(serve, row.words, {{"STEPWELL_DATABASE_URL", row.url}});
    const auto goes_on = [&] {
      return IsWaiting() || access((scratch_ / "data/ready.json").c_str(), F_OK) == 0;
    };
    EXPECT_TRUE(Eventually(goes_on, absl::Seconds(60))) << ReadAll(log_);
    EXPECT_EQ(Owner(serve), row.owner);
    End(serve);
  }
}

// Masters that look at the database and end by themselves, unless it is silent.
class MasterThatEndsTest : public MasterSecretsTest {
 protected:
  struct Told {
    const char* name;
    const char* flag;
    Words words;
    std::map<std::string, std::string> variables;
  };
  std::vector<Told> Tellings() const {
    const std::string at = absl::StrCat("@127.0.0.1:", silent_.port(), "/x");
    const std::string url = "postgresql://app:p4ssw0rd" + at, bare = "postgresql://app" + at;
    return {
        {"an option", "--migrate-only", {"--database-url", url}, {}},
        {"a variable", "--dry-run", {}, {{"STEPWELL_DATABASE_URL", url}}},
        {"libpq's own", "--migrate-only", {"--database-url", bare}, {{"PGPASSWORD", "p4ssw0rd"}}},
    };
  }
  // Where it may write core files, as far as it is concerned.
  void StartThere(ChildProcess& child, const Words& program,
                  const std::map<std::string, std::string>& variables = {}) {
    Words words = {"/bin/sh", "-c",
                   absl::StrCat("cd ", scratch_.path(), "; ulimit -c unlimited; ", "exec \"$@\""),
                   "sh"};
    words.insert(words.end(), program.begin(), program.end());
    if (geteuid() == 0) {
      const Words nobody = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
      words.insert(words.begin(), nobody.begin(), nobody.end());
    }
    child.Start(words, variables, scratch_ / absl::StrCat("log-", ++count_));
  }
  void Start(ChildProcess& serve, const Told& told) {
    Words words = {program_, "serve", told.flag};
    words.insert(words.end(), told.words.begin(), told.words.end());
    StartThere(serve, words, told.variables);
  }
  // It is root's, too, while root's own fork of it has not become somebody else yet.
  bool IsPrivateSoon(const ChildProcess& serve) const {
    return Eventually([&] { return IsMaster(serve) && Owner(serve) == 0; }, absl::Seconds(20));
  }
  static void Abort(ChildProcess& child) {
    EXPECT_TRUE(child.running()) << "it was looked at while it waited";
    child.Signal(SIGABRT);
    EXPECT_EQ(child.Wait(absl::Seconds(30)), "killed by signal 6");
  }

  const SilentListener silent_;
};

TEST_F(MasterThatEndsTest, KeepsItsPasswordToItself) {
  for (const Told& told : Tellings()) {
    SCOPED_TRACE(told.name);
    ChildProcess serve;
    Start(serve, told);
    EXPECT_TRUE(IsPrivateSoon(serve));
    EXPECT_THAT(Shown(serve), Not(HasSubstr("p4ssw0rd")));
    Abort(serve);
  }
}

TEST_F(MasterThatEndsTest, LeavesNoCoreFile) {
  if (const std::string why = WhyNoCoreFiles(); !why.empty()) GTEST_SKIP() << why;
  for (const Told& told : Tellings()) {
    SCOPED_TRACE(told.name);
    ChildProcess serve;
    Start(serve, told);
    EXPECT_TRUE(IsPrivateSoon(serve));
    Abort(serve);
    EXPECT_FALSE(TakeCoreFile(scratch_.path()));
  }
  ChildProcess other;
  StartThere(other, {"/bin/sleep", "600"});
  EXPECT_TRUE(
      Eventually([&] { return absl::StartsWith(Shown(other), "/bin/sleep"); }, absl::Seconds(20)));
  Abort(other);
  EXPECT_TRUE(TakeCoreFile(scratch_.path())) << "what has no secret leaves one there";
}

}  // namespace
}  // namespace stepwell::testing
