// A master within TLS that was told of no token file: it makes an admin's token at its first start, for its own user alone, and
// says where; what stands in the way is told.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/startup.h"
#include "tests/support/postgres.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

// nobody's, on Debian.
constexpr unsigned kNobody = 65534;

class FirstTokenTest : public StartupTest {
 protected:
  void SetUp() override {
    const TlsPair server = *ca_.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now_, End()});
    std::ofstream(scratch_ / "ca.pem") << ca_.own().cert_pem;
    std::ofstream(scratch_ / "server.pem") << server.cert_pem;
    std::ofstream(scratch_ / "server.key") << server.key_pem;
    if (geteuid() != 0) return;
    // Root may write everywhere: as somebody else, with a program that he reaches.
    user_ = kNobody;
    program_ = scratch_ / "stepwell";
    std::filesystem::create_hard_link(BuiltProgram("stepwell"), program_, linked_);
    if (linked_) std::filesystem::copy_file(BuiltProgram("stepwell"), program_);
    prefix_ = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    if (access(prefix_[0].c_str(), X_OK) != 0) GTEST_SKIP() << "no setpriv here";
  }
  absl::Time End() const { return now_ + absl::Hours(9); }
  Words Tls(const Words& more) const {
    Words flags = {"--tls-cert", scratch_ / "server.pem", "--tls-key", scratch_ / "server.key"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  // A directory of the user's own, or of nobody's who may write.
  std::string Directory(const std::string& name, mode_t mode) const {
    const std::string path = scratch_ / name;
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    EXPECT_EQ(chown(path.c_str(), user_, static_cast<gid_t>(-1)), 0);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  // Until it is ready; its log is in log_, where it listens in http_.
  void Start(const Words& flags, const std::map<std::string, std::string>& environment = {}) {
    Words words = prefix_;
    words.insert(words.end(), {program_, "serve"});
    words.insert(words.end(), flags.begin(), flags.end());
    const std::string ready = Directory(absl::StrCat("ready-", ++count_), 0700) + "/ready.json";
    for (const char* port : {"--grpc-listen", "--http-listen"}) {
      words.insert(words.end(), {port, listen_});
    }
    words.insert(words.end(), {"--ready-file", ready});
    log_ = scratch_ / absl::StrCat("log-", count_);
    master_ = ChildProcess();
    master_.Start(words, environment, log_);
    const bool is_there = Eventually(
        [&] { return access(ready.c_str(), F_OK) == 0 || !master_.running(); }, absl::Seconds(60));
    ASSERT_TRUE(is_there && master_.running()) << ReadAll(log_);
    ASSERT_TRUE(Eventually([&] { return ReadAll(log_).find("Stop with") != std::string::npos; },
                           absl::Seconds(20)));
    const auto addresses = nlohmann::json::parse(ReadAll(ready));
    grpc_ = addresses.at("grpc").get<std::string>();
    const auto at = addresses.at("http").get<std::string>();
    http_ = absl::StrCat("https://127.0.0.1", at.substr(at.rfind(':')));
  }
  void Stop() {
    master_.Signal(SIGTERM);
    EXPECT_EQ(master_.Wait(absl::Seconds(60)), "exit 0") << ReadAll(log_);
  }
  // What /metrics answers.
  std::string Asked(const std::string& token) {
    Words words = {"/usr/bin/curl",    "--silent",  "--show-error", "--max-time",   "30",
                   "--output",         "/dev/null", "--write-out",  "%{http_code}", "--cacert",
                   scratch_ / "ca.pem"};
    if (!token.empty()) words.insert(words.end(), {"--oauth2-bearer", token});
    words.push_back(http_ + "/metrics");
    const std::string log = scratch_ / absl::StrCat("asked-", ++count_);
    ChildProcess curl;
    curl.Start(words, {}, log);
    EXPECT_EQ(curl.Wait(absl::Seconds(60)), "exit 0") << ReadAll(log);
    return ReadAll(log);
  }
  std::string Shell(const std::string& commands) {
    ChildProcess shell;
    shell.Start({"/bin/sh", "-c", commands}, {}, scratch_ / absl::StrCat("shell-", ++count_));
    return shell.Wait(absl::Seconds(60));
  }
  static std::string TokenIn(const std::string& file) {
    std::string token;
    std::ifstream(file) >> token;
    return token;
  }
  void ExpectItsUsersAlone(const std::string& file) const {
    struct stat found {};
    ASSERT_EQ(stat(file.c_str(), &found), 0) << file;
    EXPECT_EQ(found.st_mode & 07777, 0600u) << file;
    EXPECT_EQ(found.st_uid, user_) << file;
  }

  const absl::Time now_ = absl::Now() - absl::Hours(1);
  const TlsAuthority ca_ = *TlsAuthority::Make("ca", now_, End());
  std::error_code linked_;
  unsigned user_ = geteuid();
  std::string listen_ = "127.0.0.1:0";
  std::string log_;
  std::string grpc_;
  std::string http_;
  ChildProcess master_;
};

TEST_F(FirstTokenTest, IsMadeBesideTheDataForTheMastersUserAloneAndStays) {
  const std::string data = Directory("data", 0700);
  Start(Tls({"--data-dir", data}));
  ExpectItsUsersAlone(data + "/token");
  const std::string token = TokenIn(data + "/token");
  ASSERT_THAT(token, ::testing::StartsWith("stepwell_admin_"));
  const std::string said = ReadAll(log_);
  EXPECT_THAT(said, HasSubstr("  token     in " + data + "/token; clients show it"));
  EXPECT_THAT(said, Not(HasSubstr(token)));
  // What it says to export is all that a command needs.
  const std::string exports =
      absl::StrCat("  export STEPWELL_TLS_CA=", scratch_ / "ca.pem",
                   "\n  export STEPWELL_TOKEN=\"$(cat ", data, "/token)\"\n");
  EXPECT_THAT(said, HasSubstr(exports));
  EXPECT_EQ(Shell(absl::StrCat(exports, "exec ", program_, " trials --server ", grpc_)), "exit 0");
  EXPECT_EQ(Asked(""), "401");
  EXPECT_EQ(Asked(token), "200");
  Stop();
  // Open to others it would be no secret, and to make another one in its place would end whoever has it.
  ASSERT_EQ(chmod((data + "/token").c_str(), 0644), 0);
  EXPECT_EQ(Serve(Tls({"--data-dir", data, anywhere_[0], anywhere_[1]})), "exit 78");
  EXPECT_EQ(said_, "stepwell serve: --token-file: " + data +
                       "/token: others than its owner may read it; mode 0600 is expected\n");
  // A file that is there is enough, also where none could be made; and others may come from now on.
  ASSERT_EQ(chmod((data + "/token").c_str(), 0600), 0);
  listen_ = "0.0.0.0:0";
  Start(Tls({"--data-dir", data}));
  EXPECT_EQ(TokenIn(data + "/token"), token);
  EXPECT_THAT(ReadAll(log_), HasSubstr("  token     in " + data + "/token; clients show it"));
  EXPECT_EQ(Asked(""), "401");
  EXPECT_EQ(Asked(token), "200");
  Stop();
}

TEST_F(FirstTokenTest, OfAUnitWithSomebodyElsesDatabaseLiesInItsStateDirectory) {
  const std::string url = TestPostgres::Get().Durable().FreshDatabase();
  const std::string state = Directory("state", 0700);
  // PostgreSQL lets its own user and this test's in.
  prefix_.clear();
  user_ = geteuid();
  ASSERT_EQ(chown(state.c_str(), user_, static_cast<gid_t>(-1)), 0);
  Start(Tls({"--database-url", url}), {{"STATE_DIRECTORY", state + ":/elsewhere"}});
  ExpectItsUsersAlone(state + "/token");
  EXPECT_EQ(Asked(""), "401");
  EXPECT_EQ(Asked(TokenIn(state + "/token")), "200");
  Stop();
  // Who wants none says so, or asks for certificates instead.
  std::filesystem::remove(state + "/token");
  Start(Tls({"--database-url", url, "--token-file", "none"}), {{"STATE_DIRECTORY", state}});
  EXPECT_EQ(Asked(""), "200");
  EXPECT_THAT(ReadAll(log_), Not(HasSubstr("  token     in ")));
  Stop();
  EXPECT_NE(access((state + "/token").c_str(), F_OK), 0);
}

TEST_F(FirstTokenTest, WhereItCannotBeMadeTheStartSaysSo) {
  const std::string locked = Directory("locked", 0500);
  const Words nowhere = {anywhere_[0], anywhere_[1], "--database-url", "postgresql:///none"};
  Words flags = Tls(nowhere);
  const std::string user = absl::StrCat(user_);
  EXPECT_EQ(Serve(flags, {{"STATE_DIRECTORY", locked}}), "exit 78");
  EXPECT_EQ(said_,
            "stepwell serve: --token-file: " + locked +
                "/token: there is none, and none can be made: Permission denied; allowed is a "
                "file in a directory that user id " +
                user + " may write to\n");
  EXPECT_EQ(Serve(flags, {{"STATE_DIRECTORY", locked + "/deeper"}}), "exit 78");
  EXPECT_EQ(said_,
            "stepwell serve: " + locked +
                "/deeper: Permission denied; the token of this master is to be kept there, which "
                "user id " +
                user + " may not make: give --token-file\n");
  flags.insert(flags.end(), {"--token-file", locked + "/deeper/token"});
  EXPECT_EQ(Serve(flags), "exit 78");
  EXPECT_THAT(said_, HasSubstr("/deeper/token: there is none, and none can be made: No such file"));
  // And without any, nobody but this machine may come.
  EXPECT_EQ(Serve(Tls({"--token-file", "none", "--grpc-listen=0.0.0.0:0"})), "exit 78");
  EXPECT_THAT(said_,
              HasSubstr("refusing to listen on 0.0.0.0:0: other machines could reach it without a "
                        "token. Listen on 127.0.0.1, name a --token-file, or pass"));
}

}  // namespace
}  // namespace stepwell::testing
