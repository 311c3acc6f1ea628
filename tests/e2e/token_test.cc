// A master with a token: no call of either port begins without it, whatever the call is.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/trace.pb.h"
#include "tests/e2e/token_stand.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_EQ(Run(trials, {{"STEPWELL_TOKEN", token_ + "0"}}), "exit 1");
  EXPECT_EQ(said_, "stepwell: this master knows no such token, or it was revoked\n");
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
  // Its first start said where it is, and nobody else reads it.
  EXPECT_EQ(master_->CountInLog(absl::StrCat("token_made file=", scratch_ / "token")), 1)
      << master_->LogTail();
  struct stat file {};
  ASSERT_EQ(stat((scratch_ / "token").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600u);
}

}  // namespace
}  // namespace stepwell::testing
