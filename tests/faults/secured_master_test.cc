// A master with TLS and tokens, whose certificate is renewed, and whose tokens are renewed or refused for a while, under a
// training. No stream ends by it, nothing is lost or doubled.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "tests/faults/database_text.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kRenewals = 2;
constexpr std::size_t kTokenBytes = 86;

using Words = std::vector<std::string>;

class SecuredMasterTest : public ::testing::Test {
 protected:
  SecuredMasterTest() {
    Write("ca.pem", ca_->own().cert_pem);
    WritePair("client", Signed(TlsSide::kClient));
    WritePair("server", Signed(TlsSide::kServer));
  }
  TlsPair Signed(TlsSide side) const {
    const absl::Time now = absl::Now();
    const auto pair =
        ca_->Sign({side, "test", {"127.0.0.1"}, now - absl::Hours(1), now + absl::Hours(9)});
    EXPECT_TRUE(pair.ok()) << pair.status();
    return *pair;
  }
  // As a whole, as those who renew certificates do.
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(scene_.path("new")) << text;
    Move("new", name);
  }
  void Move(const std::string& from, const std::string& to) const {
    EXPECT_EQ(std::rename(scene_.path(from).c_str(), scene_.path(to).c_str()), 0);
  }
  void WritePair(const std::string& name, const TlsPair& pair) const {
    Write(name + ".key", pair.key_pem);
    Write(name + ".pem", pair.cert_pem);
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(scene_.path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void StartMaster(const Words& more) {
    Words flags = {"--tls-cert", scene_.path("server.pem"), "--tls-key", scene_.path("server.key")};
    flags.insert(flags.end(), more.begin(), more.end());
    master_.emplace(MasterProcess::Options{.scratch = scene_.path(""), .flags = flags});
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  }
  void StartTokenMaster(const std::string& fetched_life) {
    StartMaster({"--token-file", scene_.path("token"), "--fetched-token-max", fetched_life,
                 "--wrong-tokens-per-minute", "100000"});
    token_ = Read("token").substr(0, kTokenBytes);
  }
  // As its own, which it fetches others with.
  void StartTokenAgent(const std::string& token) {
    scene_.agent().Start({testing::BuiltProgram("stepwell"), "agent", "--server",
                          master_->grpc_address(), "--spool-dir", scene_.spool_dir(),
                          "--no-auto-sampling", "--tls-ca", scene_.path("ca.pem")},
                         {{"STEPWELL_TOKEN", token}}, scene_.path("agent.log"));
  }
  void StartTrainers() {
    for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  }
  // How `stepwell WORDS --server ...` ended.
  std::string Command(Words words, const Words& more) const {
    words.insert(words.begin(), testing::BuiltProgram("stepwell"));
    words.insert(words.end(),
                 {"--server", master_->grpc_address(), "--tls-ca", scene_.path("ca.pem")});
    words.insert(words.end(), more.begin(), more.end());
    std::remove(scene_.path("said").c_str());
    ChildProcess child;
    child.Start(words, {{"STEPWELL_TOKEN", token_}}, scene_.path("said"));
    return child.Wait(absl::Seconds(30));
  }
  // The token that it tells.
  std::string Token(const Words& words) const {
    EXPECT_EQ(Command(words, {}), "exit 0") << Read("said");
    const std::string said = Read("said");
    const std::size_t at = said.find("stepwell_");
    return at == std::string::npos ? "" : said.substr(at, kTokenBytes);
  }
  int TokensFetched() const { return master_->CountInLog("token_fetched"); }
  void AwaitCommits(const std::string& when) const {
    const auto committed = [&] {
      std::int64_t count = 0;
      (void)absl::SimpleAtoi(
          DatabaseText(master_->database_url(),
                       "select sum(committed_sequence)::bigint from stepwell.writer_progress"),
          &count);
      return count;
    };
    const std::int64_t before = committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat("commits ", when), absl::Seconds(60),
                             [&] { return committed() >= before + 20; }))
        << scene_.Logs() << master_->LogTail();
  }
  void Pass(absl::Duration length) const {
    const absl::Duration due = scene_.Elapsed() + length;
    Eventually([&] { return scene_.Elapsed() >= due; }, absl::Minutes(1));
  }
  // What asks here speaks no TLS: a master without it, on the same data.
  void ExpectAllOnce() {
    scene_.StopProducers(absl::Seconds(90));
    ASSERT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
    MasterProcess plain({.scratch = scene_.path("")});
    ASSERT_TRUE(plain.StartAndWait()) << plain.LogTail();
    const Verdict verdict = scene_.ExpectExact(plain, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_EQ(plain.Stop(), "exit 0") << plain.LogTail();
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  const absl::StatusOr<TlsAuthority> ca_ =
      TlsAuthority::Make("test", absl::Now() - absl::Hours(9), absl::Now() + absl::Hours(9));
  std::optional<MasterProcess> master_;
  std::string token_;  // the master's own
};

// Half of each pair first, as those who copy files do it.
TEST_F(SecuredMasterTest, RenewedCertificatesEndNoStreamAndLoseNothing) {
  ASSERT_NO_FATAL_FAILURE(StartMaster({"--tls-client-ca", scene_.path("ca.pem")}));
  const Words own = {"--tls-cert", scene_.path("client.pem"), "--tls-key",
                     scene_.path("client.key")};
  Words agents = {"--tls-ca", scene_.path("ca.pem")};
  agents.insert(agents.end(), own.begin(), own.end());
  scene_.StartAgent(master_->grpc_address(), agents);
  StartTrainers();
  AwaitCommits("before");
  // Files are looked at as somebody comes, who gets in all the time.
  const auto lets_in = [&] { return Command({"trials"}, own) == "exit 0"; };
  const int taken_before = master_->CountInLog("certificates_taken");
  for (int i = 1; i <= kRenewals; ++i) {
    const TlsPair next = Signed(TlsSide::kServer);
    Write("server.key", next.key_pem);
    ASSERT_TRUE(scene_.Await("half a pair is not taken", absl::Seconds(60), [&] {
      return lets_in() && master_->CountInLog("certificates_not_taken") >= i;
    })) << master_->LogTail();
    Write("server.pem", next.cert_pem);
    ASSERT_TRUE(scene_.Await("the pair is taken", absl::Seconds(60), [&] {
      return lets_in() && master_->CountInLog("certificates_taken") >= taken_before + i;
    })) << master_->LogTail();
    AwaitCommits("on the stream of before");
  }
  EXPECT_EQ(Read("agent.log").find("stream_broken"), std::string::npos) << scene_.Logs();
  scene_.agent().Kill();
  scene_.StartAgent(master_->grpc_address(), agents);
  AwaitCommits("of an agent that came anew");
  ExpectAllOnce();
}

// Each time for longer than a fetched one lives: the agent's own opens its writers again.
TEST_F(SecuredMasterTest, LongADeathWhileTokensAreRenewedLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartTokenMaster("2s"));
  const std::string wide = Token({"token", "create", "ci", "--grant", "write:default"});
  StartTokenAgent(wide);
  StartTrainers();
  for (int life = 1; life <= 2; ++life) {
    const int before = TokensFetched();
    ASSERT_TRUE(scene_.Await("two tokens are fetched", absl::Seconds(60), [&] {
      return TokensFetched() >= before + 2;
    })) << scene_.Logs();
    master_->Kill();
    Pass(absl::Seconds(3));
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
    AwaitCommits("of the next one");
  }
  ExpectAllOnce();
}

// The agent has no other token than one that it renews, and for a while that is refused.
TEST_F(SecuredMasterTest, LongARefusalThatPassesLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartTokenMaster("10s"));
  const std::string fetched = Token({"token", "fetch", "--trial", "default/faults"});
  StartTokenAgent(fetched);
  StartTrainers();
  for (int i = 0; i < 2; ++i) {
    const int before = TokensFetched();
    ASSERT_TRUE(scene_.Await("it is renewed", absl::Seconds(60), [&] {
      return TokensFetched() > before;
    })) << scene_.Logs();
    // Whenever it is renewed, after four to six seconds, that is refused.
    Pass(absl::Milliseconds(2800));
    Move("token", "token-away");
    Pass(absl::Milliseconds(3500));
    Move("token-away", "token");
    AwaitCommits("once it is taken again");
  }
  EXPECT_NE(Read("agent.log").find("token_not_fetched"), std::string::npos)
      << "it was refused indeed";
  ExpectAllOnce();
}

}  // namespace
}  // namespace stepwell::faults
