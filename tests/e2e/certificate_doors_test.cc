// Doors of a master that asks for certificates and for tokens: who shows a certificate to whose name grants are
// given needs no token, on both ports, for every method; nobody else gets in by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "server/access_rules.h"
#include "stepwell/v1/admin.pb.h"
#include "tests/e2e/doors_stand.h"
#include "tests/e2e/request_about.h"
#include "tests/support/child_process.h"
#include "tests/support/client_certificate.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {
namespace {

using google::protobuf::MethodDescriptor;
using grpc::StatusCode;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kListTrials[] = "stepwell.v1.QueryService/ListTrials";

class CertificateDoorsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    stand_ = new DoorsStand(AsksCertificates::kYes);
    vision_ = {stand_->Record("vision", "run"), "vision", "run"};
    speech_ = {stand_->Record("speech", "run"), "speech", "run"};
  }
  static void TearDownTestSuite() {
    delete stand_;
    stand_ = nullptr;
  }

  static TlsPair Client(const OddNames& names) { return OddClient(stand_->ca(), names); }
  static grpc::Status List(const TlsPair& own, const std::string& token = "") {
    return DoorsStand::CallOn(stand_->ChannelAs(own), kListTrials, v1::ListTrialsRequest(), token)
        .status;
  }
  // Options of curl that show `own`.
  static std::vector<std::string> Shows(const TlsPair& own) {
    static int count = 0;
    const std::string name = absl::StrCat("own-", ++count);
    stand_->Write(name + ".pem", own.cert_pem);
    stand_->Write(name + ".key", own.key_pem);
    return {"--cert", stand_->Scratch(name + ".pem"), "--key", stand_->Scratch(name + ".key")};
  }
  static std::vector<std::string> With(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // What `stepwell` with `words` said, after how it ended.
  static std::string Command(std::vector<std::string> words, const TlsPair& own,
                             const std::string& token = "") {
    const auto shows = Shows(own);
    words.insert(words.begin(), BuiltProgram("stepwell"));
    words.insert(words.end(), {"--server", stand_->server().addresses().grpc, "--tls-ca",
                               stand_->ca_file(), "--tls-cert", shows[1], "--tls-key", shows[3]});
    static int count = 0;
    ChildProcess child;
    const std::string log = stand_->Scratch(absl::StrCat("command-", ++count));
    child.Start(words, {{"STEPWELL_TOKEN", token}}, log);
    const std::string ending = child.Wait(absl::Seconds(60));
    return ending + "\n" + DoorsStand::ReadFile(log);
  }

  static DoorsStand* stand_;
  static AskedTrial vision_, speech_;
};

DoorsStand* CertificateDoorsTest::stand_ = nullptr;
AskedTrial CertificateDoorsTest::vision_, CertificateDoorsTest::speech_;

TEST_F(CertificateDoorsTest, EachMethodAsksWhatTheCertificateIsGiven) {
  const TlsPair reader = Client({.dns = {"reader.lab"}});
  const TlsPair ingester = Client({.uris = {"spiffe://lab/ingester"}});
  const TlsPair admin = Client({.common = {"The admin"}});
  ASSERT_TRUE(stand_->Give("dns:reader.lab", {"read:vision"}).ok());
  ASSERT_TRUE(stand_->Give("uri:spiffe://lab/ingester", {"ingest:vision/run"}).ok());
  ASSERT_TRUE(stand_->Give("cn:The admin", {"admin"}).ok());
  const auto of = [&](const TlsPair& own, const MethodDescriptor& method, const AskedTrial& trial) {
    return DoorsStand::CallOn(stand_->ChannelAs(own), PathOf(method), *RequestAbout(method, trial),
                              "", absl::Seconds(3));
  };
  const auto opening = [](const MethodDescriptor& method, const Called& called) {
    v1::StreamChunksResponse answer;
    v1::WriteChunksResponse answers;
    if (method.client_streaming()) {
      EXPECT_TRUE(answer.ParseFromString(called.bytes));
    } else {
      EXPECT_TRUE(answers.ParseFromString(called.bytes));
      if (answers.messages_size() > 0) answer = answers.messages(0);
    }
    return answer;
  };
  for (const MethodDescriptor* method : EveryMethod()) {
    SCOPED_TRACE(method->full_name());
    const AccessRule& rule = *FindRule(*method->input_type());
    const auto request = RequestAbout(*method, vision_);
    EXPECT_EQ(stand_->Call(PathOf(*method), *request, "").status.error_code(),
              StatusCode::UNAUTHENTICATED)
        << "a certificate that nothing is given to";
    const Called read = of(reader, *method, vision_);
    const Called hidden = of(reader, *method, speech_);
    switch (rule.subject) {
      case Subject::kTrials:
      case Subject::kPlace:
      case Subject::kTrialId:
        if (rule.right == Right::kRead) {
          EXPECT_THAT(read.status.error_code(),
                      AnyOf(StatusCode::OK, StatusCode::INVALID_ARGUMENT, StatusCode::NOT_FOUND,
                            StatusCode::FAILED_PRECONDITION, StatusCode::DEADLINE_EXCEEDED))
              << read.status.error_message();
          EXPECT_THAT(read.status.error_message(), Not(HasSubstr("there is no trial")));
        } else {
          EXPECT_EQ(read.status.error_code(), StatusCode::PERMISSION_DENIED);
        }
        EXPECT_EQ(hidden.status.error_code(), rule.right == Right::kIngest
                                                  ? StatusCode::PERMISSION_DENIED
                                                  : StatusCode::NOT_FOUND);
        break;
      case Subject::kMaster:
        EXPECT_EQ(read.status.error_code(), StatusCode::PERMISSION_DENIED);
        break;
      case Subject::kEachWriter:
        EXPECT_EQ(opening(*method, read).refused().reason(), "GRANT_MISSING");
        EXPECT_TRUE(opening(*method, of(ingester, *method, vision_)).has_opened());
        EXPECT_TRUE(opening(*method, of(ingester, *method, speech_)).has_refused());
        break;
      case Subject::kIngest:
        EXPECT_EQ(read.status.error_code(), StatusCode::PERMISSION_DENIED);
        EXPECT_TRUE(of(ingester, *method, vision_).status.ok());
        break;
      case Subject::kList:
        EXPECT_THAT(read.bytes, HasSubstr("vision"));
        EXPECT_THAT(read.bytes, Not(HasSubstr("speech")));
        break;
    }
  }
  EXPECT_TRUE(DoorsStand::CallOn(stand_->ChannelAs(admin), "stepwell.v1.TokenService/ListTokens",
                                 v1::ListTokensRequest(), "")
                  .status.ok());
}

TEST_F(CertificateDoorsTest, EachPathOfHttpAsksTheSame) {
  const auto reader = Shows(Client({.dns = {"http-reader.lab"}}));
  const auto nobody = Shows(Client({.dns = {"nobody.lab"}}));
  ASSERT_TRUE(stand_->Give("dns:http-reader.lab", {"read:vision"}).ok());
  int refused = 0;
  for (const auto& route : stand_->server().http_routes()) {
    if (route.door == HttpDoor::kOpen) continue;
    SCOPED_TRACE(route.method + " " + route.path);
    const std::vector<std::string> how = route.method == "POST"
                                             ? std::vector<std::string>{"--json", "{}"}
                                             : std::vector<std::string>();
    EXPECT_EQ(stand_->Curl(route.path, "", With(nobody, how)).code, "401");
    EXPECT_NE(stand_->Curl(route.path, "", With(reader, how)).code, "401");
    ++refused;
  }
  EXPECT_GE(refused, 30);
  const auto ask = [&](const std::string& method, std::int64_t trial) {
    return stand_->Curl(
        "/stepwell.v1." + method, "",
        With(reader, {"--json", absl::StrCat(R"({"trial":{"trialId":")", trial, R"("}})")}));
  };
  EXPECT_EQ(ask("QueryService/GetTrial", vision_.id).code, "200");
  EXPECT_EQ(ask("QueryService/GetTrial", speech_.id).code, "404") << "hidden";
  EXPECT_EQ(ask("AdminService/ArchiveTrial", vision_.id).code, "403") << "forbidden";
  EXPECT_EQ(ask("AdminService/ArchiveTrial", speech_.id).code, "404") << "hidden";
  EXPECT_EQ(stand_->Curl("/metrics?trial=none", "", reader).code, "403");
  EXPECT_THAT(stand_->Curl("/sd", "", reader).body, Not(HasSubstr("speech")));
  // What stands for a certificate inside the process is nothing that a client can say.
  for (const std::string header :
       {"Authorization: Inside_", "Authorization: Inside_0123456789ab",
        "Authorization: "
        "Inside_0000000000000000000000000000000000000000000000000000000000000000_x"}) {
    EXPECT_EQ(stand_->Curl("/page.json", "", With(reader, {"--header", header})).code, "401");
  }
}

TEST_F(CertificateDoorsTest, ANameCountsWholeOrNotAtAll) {
  ASSERT_TRUE(stand_->Give("dns:Agent-7.lab", {"read:vision"}).ok());
  ASSERT_TRUE(stand_->Give("uri:spiffe://lab/agent/7", {"read:vision"}).ok());
  const struct {
    const char* name;
    OddNames names;
    bool is_let_in;
  } rows[] = {
      {"the name", {.dns = {"agent-7.lab"}}, true},
      {"other letters", {.dns = {"AGENT-7.lab"}}, true},
      {"the URI", {.uris = {"spiffe://lab/agent/7"}}, true},
      {"two, of which one is given grants", {.dns = {"x.lab", "agent-7.lab"}}, true},
      {"a wildcard that covers it", {.dns = {"*.lab"}}, false},
      {"a NUL behind it", {.dns = {std::string("agent-7.lab\0", 12)}}, false},
      {"a NUL and more", {.dns = {std::string("agent-7.lab\0.evil.example", 25)}}, false},
      {"more behind it", {.dns = {"agent-7.lab.evil.example"}}, false},
      {"more before it", {.dns = {"evil.agent-7.lab"}}, false},
      {"a dot behind it", {.dns = {"agent-7.lab."}}, false},
      {"a space", {.dns = {"agent-7.lab "}}, false},
      {"as a common name", {.common = {"agent-7.lab"}}, false},
      {"with the kind in a common name", {.common = {"dns:agent-7.lab"}}, false},
      {"as a URI", {.uris = {"agent-7.lab"}}, false},
      {"the URI in other letters", {.uris = {"spiffe://lab/Agent/7"}}, false},
      {"the URI as a DNS name", {.dns = {"spiffe://lab/agent/7"}}, false},
      {"a letter that looks like it", {.dns = {"\xd0\xb0gent-7.lab"}}, false},
      {"no names", {.common = {}}, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const grpc::Status status = List(Client(row.names));
    EXPECT_EQ(status.error_code(), row.is_let_in ? StatusCode::OK : StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(stand_->Curl("/page.json", "", Shows(Client(row.names))).code,
              row.is_let_in ? "200" : "401");
  }
  const grpc::Status both =
      List(Client({.dns = {"agent-7.lab"}, .uris = {"spiffe://lab/agent/7"}}));
  EXPECT_EQ(both.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(both.error_message(), HasSubstr("it cannot be told which are meant: revoke one"));
  const grpc::Status twice = stand_->Give("dns:agent-7.lab", {"admin"});
  EXPECT_EQ(twice.error_code(), StatusCode::ALREADY_EXISTS) << twice.error_message();
  const grpc::Status wildcard = stand_->Give("dns:*.lab", {"admin"});
  EXPECT_EQ(wildcard.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(wildcard.error_message(), HasSubstr("certificate: 'dns:*.lab' is no name of one"));
}

TEST_F(CertificateDoorsTest, ATokenThatIsShownCountsInsteadOfIt) {
  const TlsPair own = Client({.dns = {"both.lab"}});
  std::string id;
  ASSERT_TRUE(stand_->Give("dns:both.lab", {"admin"}, &id).ok());
  const std::string token = stand_->MakeToken({"read:speech"});
  const auto listed = [&](const std::string& shown) {
    return DoorsStand::CallOn(stand_->ChannelAs(own), kListTrials, v1::ListTrialsRequest(), shown);
  };
  EXPECT_THAT(listed("").bytes, HasSubstr("vision"));
  EXPECT_THAT(listed(token).bytes, Not(HasSubstr("vision")));
  EXPECT_EQ(listed(token + "0").status.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(stand_->Curl("/page.json", token + "0", Shows(own)).code, "401");
  // An id is no secret.
  EXPECT_EQ(listed(absl::StrCat("stepwell_", id, "_", std::string(64, '0'))).status.error_code(),
            StatusCode::UNAUTHENTICATED);
}

TEST_F(CertificateDoorsTest, WhatIsOpenEndsWithItsGrants) {
  const TlsPair own = Client({.dns = {"streams.lab"}});
  std::string id;
  ASSERT_TRUE(stand_->Give("dns:streams.lab", {"write:vision"}, &id).ok());
  const auto channel = stand_->ChannelAs(own);
  const auto query = v1::QueryService::NewStub(channel);
  const auto ingest = v1::IngestService::NewStub(channel);
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_trial_id(vision_.id);
  grpc::ClientContext follow_context;
  grpc::ClientContext ingest_context;
  const auto follow = query->FollowSamples(&follow_context, request);
  v1::FollowSamplesResponse followed;
  ASSERT_TRUE(follow->Read(&followed));
  const auto stream = ingest->StreamChunks(&ingest_context);
  auto open = OpenMessage({.writer = Uuid::Random(), .external_id = "run"});
  open.mutable_open()->set_project("vision");
  ASSERT_TRUE(stream->Write(open));
  v1::StreamChunksResponse answer;
  while (!answer.has_opened()) ASSERT_TRUE(stream->Read(&answer)) << answer.DebugString();
  const absl::Time revoked = absl::Now();
  stand_->RevokeId(id);
  EXPECT_EQ(List(own).error_code(), StatusCode::UNAUTHENTICATED) << "at once";
  while (follow->Read(&followed)) {
  }
  while (stream->Read(&answer)) {
  }
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(5));
  EXPECT_EQ(follow->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  ASSERT_TRUE(stand_->Give("dns:streams.lab", {"read:vision"}, nullptr, 2).ok()) << "anew";
  EXPECT_TRUE(List(own).ok());
  EXPECT_TRUE(Eventually([&] { return !List(own).ok(); }, absl::Seconds(5))) << "it expires";
}

TEST_F(CertificateDoorsTest, CommandsGiveListAndRevokeThem) {
  const TlsPair own = Client({.dns = {"command.lab"}});
  const std::string made = Command(
      {"token", "create", "ci", "--certificate", "dns:Command.lab", "--grant", "read:vision"}, own,
      stand_->admin());
  EXPECT_THAT(made, ::testing::StartsWith("exit 0\nClients with the certificate dns:command.lab "
                                          "have read:vision, expires never. Revoke "));
  EXPECT_THAT(made, Not(HasSubstr("stepwell_")));
  EXPECT_THAT(Command({"trials"}, own), HasSubstr("run"));
  const std::string listed = Command({"token", "list", "--json"}, own, stand_->admin());
  std::string id;
  const auto json = nlohmann::json::parse(listed.substr(listed.find('{')));
  for (const auto& token : json["tokens"]) {
    if (token["certificate"] == "dns:command.lab") id = token["token_id"];
  }
  EXPECT_THAT(Command({"token", "list"}, own, stand_->admin()), HasSubstr("dns:command.lab"));
  EXPECT_THAT(Command({"token", "list"}, own), HasSubstr("has no grant admin"));
  EXPECT_THAT(Command({"token", "revoke", id}, own, stand_->admin()), HasSubstr("is revoked"));
  EXPECT_THAT(Command({"trials"}, own),
              HasSubstr("no grants are given to this client's certificate"));
  EXPECT_THAT(Command({"token", "create", "ci", "--certificate", "command.lab", "--grant", "admin"},
                      own, stand_->admin()),
              HasSubstr("certificate: 'command.lab' is no name of one; allowed: dns:NAME"));
}

// By nothing but its certificate.
TEST_F(CertificateDoorsTest, AnAgentsTrialArrives) {
  const auto shows = Shows(Client({.dns = {"agent-1.lab"}}));
  ASSERT_TRUE(stand_->Give("dns:agent-1.lab", {"write:default"}).ok());
  ChildProcess trial;
  const std::string log = stand_->Scratch("trial.log");
  trial.Start(
      {BuiltProgram("fault_trainer"), "--spool-dir", stand_->Scratch("spool"), "--log",
       stand_->Scratch("ledger"), "--steps", "50", "--rate", "2000", "--close-wait-ms", "60000"},
      {{"STEPWELL_TLS_CA", stand_->ca_file()},
       {"STEPWELL_TLS_CERT", shows[1]},
       {"STEPWELL_TLS_KEY", shows[3]},
       {"STEPWELL_SERVER", stand_->server().addresses().grpc},
       {"STEPWELL_AGENT", BuiltProgram("stepwell")},
       {"STEPWELL_AGENT_IDLE_EXIT", "1"}},
      log);
  EXPECT_EQ(trial.Wait(absl::Seconds(90)), "exit 0") << DoorsStand::ReadFile(log);
}

TEST(CertificateDoors, AMasterThatAsksForNoneGivesThemNothing) {
  DoorsStand stand;
  const grpc::Status given = stand.Give("dns:agent-7.lab", {"admin"});
  EXPECT_EQ(given.error_code(), StatusCode::FAILED_PRECONDITION) << given.error_message();
}

}  // namespace
}  // namespace stepwell::testing
