// A master with a token: no call of either port begins without it, whatever the call is.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/trace.pb.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

// Every method of the wire contract, and gRPC's own that a master has.
std::vector<std::string> Methods() {
  std::vector<std::string> methods = {
      "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "/no.such.Service/Method"};
  for (const auto* file :
       {v1::Opened::descriptor()->file(), v1::FlushRequest::descriptor()->file(),
        v1::ListTrialsRequest::descriptor()->file(), v1::ListTracesRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(absl::StrCat("/", file->service(i)->full_name(), "/",
                                       file->service(i)->method(j)->name()));
      }
    }
  }
  return methods;
}

class TokenTest : public SpineTest {
 protected:
  void SetUp() override {
    const TlsPair server = *ca_.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now_, End()});
    Write("ca.pem", ca_.own().cert_pem);
    Write("server.pem", server.cert_pem);
    Write("server.key", server.key_pem);
    StartMaster({"--tls-cert", scratch_ / "server.pem", "--tls-key", scratch_ / "server.key",
                 "--token-file", scratch_ / "token", "--wrong-tokens-per-minute", "100000"});
    std::ifstream(scratch_ / "token") >> token_;
  }
  absl::Time End() const { return now_ + absl::Hours(9); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
  }

  std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateChannel(master_->grpc_address(),
                               grpc::SslCredentials({ca_.own().cert_pem, "", ""}));
  }
  // With an Authorization header, unless it is empty; of an empty message.
  grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                    const std::string& authorization) const {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    call->StartCall(nullptr);
    grpc::Status status;
    call->Finish(&status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    // The start and the end.
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }
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
  // What the status line says.
  std::string Curl(const std::string& path, const Words& more = {}) {
    Words words = {"/usr/bin/curl",
                   "--silent",
                   "--show-error",
                   "--max-time",
                   "30",
                   "--output",
                   "/dev/null",
                   "--write-out",
                   "%{http_code}",
                   "--cacert",
                   scratch_ / "ca.pem",
                   absl::StrCat("https://", master_->http_address(), path)};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(Run(words), "exit 0") << said_;
    return said_;
  }

  const absl::Time now_ = absl::Now() - absl::Hours(1);
  const TlsAuthority ca_ = *TlsAuthority::Make("ca", now_, End());
  std::string token_;
  std::string said_;
  int count_ = 0;
};

TEST_F(TokenTest, NoMethodOfGrpcBeginsWithoutIt) {
  const auto channel = Channel();
  const std::vector<std::string> methods = Methods();
  EXPECT_GE(methods.size(), 25u);
  for (const std::string& method : methods) {
    SCOPED_TRACE(method);
    for (const std::string& shown :
         std::vector<std::string>{"", "Bearer " + token_ + "0", "Bearer ", "Basic " + token_}) {
      EXPECT_EQ(Call(channel, method, shown).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    }
  }
  EXPECT_EQ(Call(channel, "/no.such.Service/Method", "Bearer " + token_).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(TokenTest, NoPathOfHttpIsAnsweredWithoutItButHealth) {
  Words paths = {"/", "/index.html", "/page.json", "/metrics", "/sd", "/no/such/path"};
  for (const std::string& method : Methods()) paths.push_back(method);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const bool is_call = absl::StrContains(path.substr(1), "/");
    const Words post = {"--json", "{}"};
    EXPECT_EQ(Curl(path, is_call ? post : Words()), "401");
  }
  const std::string query = "/stepwell.v1.QueryService/ListTrials";
  EXPECT_EQ(Curl(query, {"--json", "{}", "--oauth2-bearer", token_ + "0"}), "401");
  EXPECT_EQ(Curl(query, {"--json", "{}", "--oauth2-bearer", token_}), "200");
  EXPECT_EQ(Curl("/", {"--user", "me:" + token_}), "200");
  EXPECT_EQ(Curl("/metrics", {"--oauth2-bearer", token_}), "200");
  EXPECT_EQ(Curl("/livez"), "200");
  EXPECT_EQ(Curl("/readyz"), "200");
}

TEST_F(TokenTest, CommandsAndAgentsShowIt) {
  const Words trials = {BuiltProgram("stepwell"), "trials",   "--server",
                        master_->grpc_address(),  "--tls-ca", scratch_ / "ca.pem"};
  EXPECT_EQ(Run(trials), "exit 1");
  EXPECT_THAT(said_, HasSubstr("this master wants its token, in STEPWELL_TOKEN"));
  EXPECT_EQ(Run(trials, {{"STEPWELL_TOKEN", token_}}), "exit 0") << said_;
  EXPECT_EQ(
      Run({BuiltProgram("fault_trainer"), "--spool-dir", scratch_ / "spool", "--log",
           scratch_ / "ledger", "--steps", "50", "--rate", "2000", "--close-wait-ms", "60000"},
          {{"STEPWELL_AGENT", BuiltProgram("stepwell")},
           {"STEPWELL_AGENT_IDLE_EXIT", "1"},
           {"STEPWELL_SERVER", master_->grpc_address()},
           {"STEPWELL_TLS_CA", scratch_ / "ca.pem"},
           {"STEPWELL_TOKEN", token_}}),
      "exit 0")
      << said_;
  EXPECT_EQ(master_->CountInLog(token_), 0);
  EXPECT_EQ(Run({"/usr/bin/grep", "-r", "-q", "-F", token_, scratch_ / "spool"}), "exit 1")
      << "written down where the trial records";
  EXPECT_GT(master_->CountInLog("token_made"), 0);
}

}  // namespace
}  // namespace stepwell::testing
