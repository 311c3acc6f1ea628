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
#include "nlohmann/json.hpp"
#include "tests/e2e/raw_call.h"
#include "tests/e2e/token_stand.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Every method of the wire contract, and gRPC's own that a master has.
std::vector<std::string> Methods() {
  std::vector<std::string> methods = {
      "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "/no.such.Service/Method"};
  for (const auto* method : EveryMethod()) {
    methods.push_back(absl::StrCat("/", method->service()->full_name(), "/", method->name()));
  }
  return methods;
}

TEST_F(TokenTest, NoMethodOfGrpcBeginsWithoutIt) {
  const std::vector<std::string> methods = Methods();
  EXPECT_GE(methods.size(), 25u);
  for (const std::string& method : methods) {
    SCOPED_TRACE(method);
    // One of its own: a connection on which nobody is known ends after 128 calls.
    const auto channel = Channel();
    for (const std::string& shown :
         std::vector<std::string>{"", "Bearer " + token_ + "0", "Bearer ", "Basic " + token_}) {
      EXPECT_EQ(Call(channel, method, shown).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    }
  }
  EXPECT_EQ(Call(Channel(), "/no.such.Service/Method", "Bearer " + token_).error_code(),
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

// It is written once a minute, and as the master stops.
TEST_F(TokenTest, WhenOneWasLastUsedIsListed) {
  const std::string made = Command({"token", "create", "ci", "--grant", "read:default"}, token_);
  const auto used_us = [&] {
    Command({"token", "list", "--json"}, token_);
    return nlohmann::json::parse(said_)["tokens"][0].value("used_time_us", std::int64_t{0});
  };
  EXPECT_EQ(used_us(), 0);
  const std::int64_t before = absl::ToUnixMicros(absl::Now());
  Command({"trials"}, made);
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  const std::int64_t used = used_us();
  EXPECT_GE(used, before - 1'000'000);
  EXPECT_LE(used, absl::ToUnixMicros(absl::Now()));
  Command({"token", "list"}, token_);
  EXPECT_THAT(said_, HasSubstr(absl::FormatTime("%Y-%m-%d %H:%M", absl::FromUnixMicros(used),
                                                absl::UTCTimeZone())));
}

// What gRPC's own health service would tell anybody.
TEST_F(TokenTest, HealthIsToldToWhoShowsIt) {
  const auto channel = grpc::CreateChannel(
      master_->grpc_address(),
      grpc::CompositeChannelCredentials(grpc::SslCredentials({ca_.own().cert_pem, "", ""}),
                                        grpc::AccessTokenCredentials(token_)));
  EXPECT_EQ(Health(channel), "SERVING");
  EXPECT_EQ(Health(channel, "stepwell.v1.QueryService"), "SERVING");
  EXPECT_EQ(Health(channel, "nobody"), "status 5: service name unknown");
  EXPECT_EQ(Health(channel, std::string(2000, 'a')).substr(0, 9), "status 3:");
  const RawAnswer none = CallRaw(channel, "/grpc.health.v1.Health/Check", "\x0a\xff");
  EXPECT_EQ(none.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  // Who watches hears of the end before his stream ends.
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto watch = stub.PrepareCall(&context, "/grpc.health.v1.Health/Watch", &queue);
  watch->StartCall(nullptr);
  ASSERT_TRUE(next());
  const grpc::Slice whole("", 0);
  watch->WriteLast(grpc::ByteBuffer(&whole, 1), grpc::WriteOptions(), nullptr);
  ASSERT_TRUE(next());
  const auto read = [&]() -> std::string {
    grpc::ByteBuffer message;
    watch->Read(&message, nullptr);
    if (!next()) return "ended";
    grpc::Slice bytes;
    EXPECT_TRUE(message.DumpToSingleSlice(&bytes).ok());
    return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
  };
  EXPECT_EQ(read(), "\x08\x01") << "SERVING";
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
  EXPECT_EQ(read(), "\x08\x02") << "NOT_SERVING";
  EXPECT_EQ(read(), "ended");
}

}  // namespace
}  // namespace stepwell::testing
