// Both ports within TLS: who comes without it, or with the wrong certificate, is refused and told why; renewed
// certificates count without ending a stream; what a trial records arrives.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "tests/e2e/connect_follow.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

using Words = std::vector<std::string>;

class TlsTest : public SpineTest {
 protected:
  TlsTest() {
    Write("ca.pem", ca_.own().cert_pem);
    Write("other.pem", other_.own().cert_pem);
    WriteServer(Signed(ca_, TlsSide::kServer));
    WritePair("client", Signed(ca_, TlsSide::kClient));
  }

  static TlsAuthority MakeCa(const std::string& name) {
    const absl::Time now = absl::Now();
    return *TlsAuthority::Make(name, now - absl::Hours(99), now + absl::Hours(99));
  }
  static TlsPair Signed(const TlsAuthority& ca, TlsSide side, absl::Duration left = absl::Hours(9),
                        const std::string& name = "127.0.0.1") {
    const absl::Time now = absl::Now();
    const auto pair = ca.Sign({side, "test", {name}, now - absl::Hours(9), now + left});
    EXPECT_TRUE(pair.ok()) << pair.status();
    return *pair;
  }
  // As a whole, as those who renew certificates do.
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / "new") << text;
    ASSERT_EQ(std::rename((scratch_ / "new").c_str(), (scratch_ / name).c_str()), 0);
  }
  void WritePair(const std::string& name, const TlsPair& pair) const {
    Write(name + ".key", pair.key_pem);
    Write(name + ".pem", pair.cert_pem);
  }
  void WriteServer(const TlsPair& pair) const { WritePair("server", pair); }

  void StartTlsMaster(const std::string& client_ca = "ca.pem") {
    StartMaster({"--tls-cert", scratch_ / "server.pem", "--tls-key", scratch_ / "server.key",
                 "--tls-client-ca", scratch_ / client_ca});
  }
  std::shared_ptr<grpc::Channel> Channel() const {
    const TlsPair own = Signed(ca_, TlsSide::kClient);
    return grpc::CreateChannel(
        master_->grpc_address(),
        grpc::SslCredentials({ca_.own().cert_pem, own.key_pem, own.cert_pem}));
  }

  Words Own(const std::string& ca = "ca.pem", const std::string& client = "client") const {
    Words words = {"--tls-ca", scratch_ / ca};
    if (client.empty()) return words;
    words.insert(words.end(), {"--tls-cert", scratch_ / (client + ".pem"), "--tls-key",
                               scratch_ / (client + ".key")});
    return words;
  }
  std::map<std::string, std::string> Variables() const {
    return {{"STEPWELL_TLS_CA", scratch_ / "ca.pem"},
            {"STEPWELL_TLS_CERT", scratch_ / "client.pem"},
            {"STEPWELL_TLS_KEY", scratch_ / "client.key"}};
  }

  // How it ended; what it said is in said_.
  std::string Run(const Words& words, const std::map<std::string, std::string>& environment = {}) {
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    ChildProcess child;
    child.Start(words, environment, log);
    const std::string ending = child.Wait(absl::Seconds(60));
    std::stringstream text;
    text << std::ifstream(log).rdbuf();
    said_ = text.str();
    return ending;
  }
  std::string Trials(const Words& more,
                     const std::map<std::string, std::string>& environment = {}) {
    Words words = {BuiltProgram("stepwell"), "trials", "--server", master_->grpc_address()};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words, environment);
  }
  std::string Curl(const Words& more) {
    Words words = {"/usr/bin/curl", "--silent", "--show-error", "--max-time", "30"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  // How curl ends that asks the HTTP port with the pair of `client`.
  std::string CurlReady(const std::string& client) {
    return Curl({"--cacert", scratch_ / "ca.pem", "--cert", scratch_ / (client + ".pem"), "--key",
                 scratch_ / (client + ".key"), Https("/readyz")});
  }
  // Whether the master, asked with the pair of `client`, has the one stream of an agent.
  bool HasStream(const std::string& client) {
    Words words = {BuiltProgram("stepwell"), "admin", "status", "--server",
                   master_->grpc_address()};
    for (const std::string& word : Own("ca.pem", client)) words.push_back(word);
    return Run(words) == "exit 0" &&
           ::testing::Matches(::testing::ContainsRegex("streams open +1\n"))(said_);
  }
  std::string Https(const std::string& path) const {
    return absl::StrCat("https://", master_->http_address(), path);
  }

  const TlsAuthority ca_ = MakeCa("ca");
  const TlsAuthority other_ = MakeCa("other");
  std::string said_;
  int count_ = 0;
};

TEST_F(TlsTest, WhoIsRefusedIsToldWhy) {
  WritePair("expired", Signed(ca_, TlsSide::kClient, -absl::Hours(1)));
  WritePair("stranger", Signed(other_, TlsSide::kClient));
  StartTlsMaster();
  EXPECT_EQ(Trials(Own()), "exit 0") << said_;
  EXPECT_EQ(Trials({}, Variables()), "exit 0") << said_;
  struct Row {
    const char* name;
    Words words;
    const char* said;
  };
  for (const Row& row : {
           Row{"plain", {}, "the master speaks TLS: name the CA of its certificate by --tls-ca"},
           Row{"wrong CA", Own("other.pem"),
               "the master's certificate is not signed by the CA of --tls-ca"},
           Row{"no certificate", Own("ca.pem", ""),
               "the master asks its clients for a certificate: --tls-cert and --tls-key"},
           Row{"expired", Own("ca.pem", "expired"), "the certificate of --tls-cert has expired"},
           Row{"another CA's", Own("ca.pem", "stranger"),
               "the master does not take the certificate of --tls-cert"},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(Trials(row.words), "exit 1");
    EXPECT_THAT(said_, HasSubstr(row.said));
  }

  const Words own = {"--cacert", scratch_ / "ca.pem",    "--cert", scratch_ / "client.pem",
                     "--key",    scratch_ / "client.key"};
  Words call = own;
  call.insert(call.end(), {"--json", "{}", Https("/stepwell.v1.QueryService/ListTrials")});
  EXPECT_EQ(Curl(call), "exit 0") << said_;
  EXPECT_THAT(said_, HasSubstr("{"));
  EXPECT_NE(Curl({"--cacert", scratch_ / "ca.pem", Https("/readyz")}), "exit 0") << said_;
  EXPECT_EQ(Curl({absl::StrCat("http://", master_->http_address(), "/readyz")}), "exit 0") << said_;
  EXPECT_EQ(said_, "{\"error\":\"this port speaks TLS: call it by https://\"}\n");
}

TEST_F(TlsTest, RenewedCertificatesCountAndEndNoStream) {
  StartTlsMaster();
  const auto ingest = v1::IngestService::NewStub(Channel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(5)));
  const auto stream = ingest->StreamChunks(&context);
  const Uuid writer = Uuid::Random();
  v1::StreamChunksResponse answer;
  ASSERT_TRUE(stream->Write(OpenMessage({.writer = writer, .external_id = "renewed"})));
  while (!answer.has_opened()) ASSERT_TRUE(stream->Read(&answer));
  ASSERT_TRUE(stream->Write(DefinitionMessage(writer, {{}})));
  ConnectFollow follow({Https(""),
                        scratch_ / "ca.pem",
                        "",
                        {"--cert", scratch_ / "client.pem", "--key", scratch_ / "client.key"}},
                       "default", "renewed", scratch_ / "followed");
  ASSERT_TRUE(follow.WaitFor("cursor")) << follow.complaint();
  const auto says = [&](const std::string& text) {
    return Eventually([&] { return Trials(Own()) != "" && absl::StrContains(said_, text); },
                      absl::Seconds(60));
  };
  // Half of a pair is none: the one from before stays, and nobody gets in without TLS meanwhile.
  const TlsPair expired = Signed(ca_, TlsSide::kServer, -absl::Hours(1));
  Write("server.key", expired.key_pem);
  EXPECT_TRUE(Eventually(
      [&] {
        return Trials(Own()) == "exit 0" && master_->CountInLog("certificates_not_taken") > 0;
      },
      absl::Seconds(60)))
      << master_->LogTail();
  EXPECT_EQ(Trials({}), "exit 1");
  Write("server.pem", expired.cert_pem);
  EXPECT_TRUE(says("the master's certificate has expired")) << said_;
  WriteServer(Signed(ca_, TlsSide::kServer, absl::Hours(9), "elsewhere.example"));
  EXPECT_TRUE(says("the master's certificate is for other names than '127.0.0.1'")) << said_;
  const Words asking = {
      "--cacert", scratch_ / "ca.pem",     "--cert",        scratch_ / "client.pem",
      "--key",    scratch_ / "client.key", Https("/readyz")};
  // curl's 60: of a certificate that is not what it should be.
  EXPECT_TRUE(Eventually([&] { return Curl(asking) == "exit 60"; }, absl::Seconds(60))) << said_;
  WriteServer(Signed(ca_, TlsSide::kServer));
  EXPECT_TRUE(Eventually([&] { return Curl(asking) == "exit 0"; }, absl::Seconds(60))) << said_;
  EXPECT_TRUE(Eventually([&] { return Trials(Own()) == "exit 0"; }, absl::Seconds(60))) << said_;
  ASSERT_TRUE(stream->Write(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1, 2, 3}))));
  while (!answer.has_ack()) ASSERT_TRUE(stream->Read(&answer)) << master_->LogTail();
  EXPECT_EQ(answer.ack().committed_sequence(), 1u);
  EXPECT_TRUE(follow.WaitFor("\"values\":[1,2,3]")) << follow.text() << follow.complaint();
  EXPECT_TRUE(follow.running()) << "nor one of the HTTP port";
  context.TryCancel();
}

TEST_F(TlsTest, AnotherClientCaCountsFromTheNextConnectionAndEndsNoStream) {
  WritePair("stranger", Signed(other_, TlsSide::kClient));
  Write("clients.pem", ca_.own().cert_pem);
  StartTlsMaster("clients.pem");
  EXPECT_EQ(Trials(Own()), "exit 0") << said_;
  EXPECT_EQ(CurlReady("client"), "exit 0") << said_;
  EXPECT_EQ(Trials(Own("ca.pem", "stranger")), "exit 1");
  EXPECT_NE(CurlReady("stranger"), "exit 0");
  const auto ingest = v1::IngestService::NewStub(Channel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(5)));
  const auto stream = ingest->StreamChunks(&context);
  const Uuid writer = Uuid::Random();
  v1::StreamChunksResponse answer;
  ASSERT_TRUE(stream->Write(OpenMessage({.writer = writer, .external_id = "before"})));
  while (!answer.has_opened()) ASSERT_TRUE(stream->Read(&answer));
  ASSERT_TRUE(stream->Write(DefinitionMessage(writer, {{}})));

  Write("clients.pem", other_.own().cert_pem);
  EXPECT_TRUE(
      Eventually([&] { return Trials(Own("ca.pem", "stranger")) == "exit 0"; }, absl::Seconds(60)))
      << said_;
  EXPECT_EQ(Trials(Own()), "exit 1");
  EXPECT_THAT(said_, HasSubstr("the master does not take the certificate of --tls-cert"));
  EXPECT_TRUE(Eventually([&] { return CurlReady("stranger") == "exit 0"; }, absl::Seconds(60)))
      << said_;
  EXPECT_NE(CurlReady("client"), "exit 0") << said_;
  ASSERT_TRUE(stream->Write(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1, 2, 3}))));
  while (!answer.has_ack()) ASSERT_TRUE(stream->Read(&answer)) << master_->LogTail();
  EXPECT_EQ(answer.ack().committed_sequence(), 1u);
  context.TryCancel();
}

TEST_F(TlsTest, AnAgentComesBackWithTheCertificateThatItsFilesHaveThen) {
  WritePair("agent", Signed(ca_, TlsSide::kClient));
  WritePair("stranger", Signed(other_, TlsSide::kClient));
  Write("clients.pem", ca_.own().cert_pem);
  StartTlsMaster("clients.pem");
  ChildProcess agent;
  Words words = {
      BuiltProgram("stepwell"), "agent",   "--server", master_->grpc_address(), "--spool-dir",
      scratch_ / "spool",       "--trial", "watched"};
  for (const std::string& word : Own("ca.pem", "agent")) words.push_back(word);
  agent.Start(words, {}, scratch_ / "agent.log");
  EXPECT_TRUE(Eventually([&] { return HasStream("client"); }, absl::Seconds(60))) << said_;

  // From here on the pair of before opens nothing.
  Write("clients.pem", other_.own().cert_pem);
  EXPECT_EQ(master_->Stop(), "exit 0");
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  EXPECT_EQ(Trials(Own("ca.pem", "agent")), "exit 1");
  EXPECT_FALSE(HasStream("stranger")) << said_;
  WritePair("agent", Signed(other_, TlsSide::kClient));
  EXPECT_TRUE(Eventually([&] { return HasStream("stranger"); }, absl::Seconds(60))) << said_;
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(absl::Seconds(60)), "exit 0");
}

TEST_F(TlsTest, WhatATrialRecordsArrives) {
  StartTlsMaster();
  auto environment = Variables();
  environment["STEPWELL_SERVER"] = master_->grpc_address();
  environment["STEPWELL_AGENT"] = BuiltProgram("stepwell");
  environment["STEPWELL_AGENT_IDLE_EXIT"] = "1";
  const auto train = [&](const std::string& spool) {
    return Run({BuiltProgram("fault_trainer"), "--spool-dir", scratch_ / spool, "--log",
                scratch_ / (spool + ".ledger"), "--steps", "50", "--rate", "2000",
                "--close-wait-ms", spool == "told" ? "60000" : "500"},
               environment);
  };
  EXPECT_EQ(train("told"), "exit 0") << said_;
  for (const auto& [variable, ignored] : Variables()) environment.erase(variable);
  environment["STEPWELL_AGENT_LEAVE"] = "70";  // it ends by itself, long after it was asked
  EXPECT_NE(train("untold"), "exit 0") << said_;
  const Words status = {BuiltProgram("stepwell"), "agent", "status", "--spool-dir",
                        scratch_ / "untold"};
  EXPECT_TRUE(Eventually(
      [&] {
        Run(status);
        return absl::StrContains(said_, "the master speaks TLS");
      },
      absl::Seconds(60)))
      << said_;
  // And what no agent sends, a person does.
  environment["STEPWELL_AGENT"] = "off";
  EXPECT_NE(train("later"), "exit 0") << said_;
  Words upload = {BuiltProgram("stepwell"), "upload", scratch_ / "later", "--server",
                  master_->grpc_address()};
  for (const std::string& word : Own()) upload.push_back(word);
  EXPECT_EQ(Run(upload), "exit 0") << said_;
}

TEST_F(TlsTest, AMasterWithoutTlsIsTold) {
  StartMaster();
  EXPECT_EQ(Trials(Own()), "exit 1");
  EXPECT_THAT(said_, HasSubstr("the master speaks no TLS there: leave out --tls-ca"));
}

}  // namespace
}  // namespace stepwell::testing
