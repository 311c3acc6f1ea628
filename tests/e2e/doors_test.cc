// Every door of a master that asks for tokens: each method of the wire contract and each path of the HTTP port,
// from the contract's files and the router's own table, without a token, with a wrong one, with one of
// another project, with one that grants too little, and with the right one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "server/access_rules.h"
#include "stepwell/v1/admin.pb.h"
#include "tests/e2e/doors_fixture.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using grpc::StatusCode;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DoorsTest, NoMethodBeginsWithoutATokenThatLives) {
  const std::string expired = stand_->MakeToken({"admin"}, 1);
  std::string wrong = stand_->MakeToken({"admin"});
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  absl::SleepFor(absl::Milliseconds(1100));
  for (const MethodDescriptor* method : EveryMethod()) {
    SCOPED_TRACE(method->full_name());
    for (const std::string& token : {std::string(), wrong, revoked_, expired}) {
      EXPECT_EQ(CodeOf(*method, token), StatusCode::UNAUTHENTICATED) << token;
    }
  }
}

TEST_F(DoorsTest, EachMethodRefusesAnotherProjectsTokenAndOneThatGrantsTooLittle) {
  for (const MethodDescriptor* method : EveryMethod()) {
    SCOPED_TRACE(method->full_name());
    const AccessRule* rule = FindRule(*method->input_type());
    ASSERT_NE(rule, nullptr) << "a method without a rule";
    switch (rule->subject) {
      case Subject::kTrials:
      case Subject::kPlace:
      case Subject::kTrialId:
        EXPECT_EQ(CodeOf(*method, other_), rule->right == Right::kIngest
                                               ? StatusCode::PERMISSION_DENIED
                                               : StatusCode::NOT_FOUND);
        if (rule->right == Right::kRead) {
          EXPECT_EQ(CodeOf(*method, ingester_), StatusCode::NOT_FOUND);
        } else {
          EXPECT_EQ(CodeOf(*method, reader_), StatusCode::PERMISSION_DENIED);
          EXPECT_EQ(CodeOf(*method, all_), StatusCode::PERMISSION_DENIED);
        }
        break;
      case Subject::kMaster:
        EXPECT_EQ(CodeOf(*method, other_), StatusCode::PERMISSION_DENIED);
        EXPECT_EQ(CodeOf(*method, writer_), StatusCode::PERMISSION_DENIED);
        EXPECT_EQ(CodeOf(*method, ingester_), StatusCode::PERMISSION_DENIED);
        if (rule->right != Right::kRead) {
          EXPECT_EQ(CodeOf(*method, all_), StatusCode::PERMISSION_DENIED);
        }
        break;
      case Subject::kIngest:
        for (const std::string& token : {reader_, all_}) {
          EXPECT_EQ(CodeOf(*method, token), StatusCode::PERMISSION_DENIED);
        }
        for (const std::string& token : {ingester_, writer_, other_}) {
          EXPECT_EQ(CodeOf(*method, token), StatusCode::OK);
        }
        break;
      case Subject::kEachWriter:
        for (const std::string& token : {other_, reader_, all_}) {
          const auto opening = OpeningOf(*method, token);
          EXPECT_EQ(opening.refused().code(), static_cast<int>(StatusCode::PERMISSION_DENIED));
          EXPECT_EQ(opening.refused().reason(), "GRANT_MISSING");
          EXPECT_THAT(opening.refused().message(), HasSubstr("no grant ingest:vision/run"));
        }
        break;
      case Subject::kList:
        for (const std::string& token : {other_, ingester_}) {
          const Called called = stand_->Call(PathOf(*method), *RequestOf(*method), token);
          EXPECT_TRUE(called.status.ok());
          EXPECT_THAT(called.bytes, Not(HasSubstr("vision")));
        }
        break;
    }
  }
}

TEST_F(DoorsTest, EachMethodLetsTheRightTokenIn) {
  int succeeded = 0;
  for (const MethodDescriptor* method : EveryMethod()) {
    SCOPED_TRACE(method->full_name());
    // It would take away what the others are about.
    if (method->name() == "DeleteTrial" || method->name() == "ArchiveTrial") continue;
    const AccessRule& rule = *FindRule(*method->input_type());
    std::vector<std::string> right = {stand_->admin()};
    if (rule.subject == Subject::kMaster) {
      if (rule.right == Right::kRead) right.push_back(all_);
    } else {
      right.push_back(writer_);
      if (rule.right == Right::kRead) right.insert(right.end(), {reader_, all_});
      if (rule.right == Right::kIngest) right.push_back(ingester_);
    }
    for (const std::string& token : right) {
      if (rule.subject == Subject::kEachWriter) {
        EXPECT_EQ(OpeningOf(*method, token).opened().trial_id(), run_);
        ++succeeded;
        continue;
      }
      const Called called =
          stand_->Call(PathOf(*method), *RequestOf(*method), token, absl::Seconds(3));
      const auto code = called.status.error_code();
      // What is asked for may be wrong in itself, as a trace with the number 0 is; a stream waits.
      EXPECT_THAT(
          code, AnyOf(StatusCode::OK, StatusCode::INVALID_ARGUMENT, StatusCode::FAILED_PRECONDITION,
                      StatusCode::DEADLINE_EXCEEDED, StatusCode::NOT_FOUND))
          << called.status.error_message();
      if (code == StatusCode::NOT_FOUND) {
        EXPECT_THAT(called.status.error_message(), Not(HasSubstr("there is no trial")));
      }
      succeeded += code == StatusCode::OK ? 1 : 0;
    }
  }
  EXPECT_GE(succeeded, 40);
}

TEST_F(DoorsTest, AProjectsWriterArchivesAndDeletesItsTrials) {
  v1::ArchiveTrialRequest archive;
  archive.mutable_trial()->set_trial_id(stand_->Record("vision", "finished", WriterEnds::kClosed));
  archive.set_archived(true);
  const auto call = [&](const char* name, const Message& request, const std::string& token) {
    return stand_->Call(absl::StrCat("stepwell.v1.AdminService/", name), request, token).status;
  };
  EXPECT_EQ(call("ArchiveTrial", archive, reader_).error_message(),
            absl::StrCat("the token ", reader_.substr(9, 12),
                         " (test) has no grant write:vision, which ArchiveTrial wants"));
  EXPECT_TRUE(call("ArchiveTrial", archive, writer_).ok());
  v1::DeleteTrialRequest removal;
  *removal.mutable_trial() = archive.trial();
  EXPECT_EQ(call("DeleteTrial", removal, other_).error_code(), StatusCode::NOT_FOUND);
  EXPECT_TRUE(call("DeleteTrial", removal, writer_).ok());
  EXPECT_TRUE(call("DeleteTrial", removal, writer_).ok()) << "once more, as ever";
  EXPECT_EQ(call("DeleteTrial", removal, other_).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(DoorsTest, EachPathOfHttpRefusesWhomItDoesNotKnow) {
  std::string wrong = stand_->MakeToken({"admin"});
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const auto routes = stand_->server().http_routes();
  EXPECT_GE(routes.size(), 30u);
  std::set<std::string> open;
  for (const auto& route : routes) {
    SCOPED_TRACE(route.method + " " + route.path);
    const std::vector<std::string> how = route.method == "POST"
                                             ? std::vector<std::string>{"--json", "{}"}
                                             : std::vector<std::string>();
    if (route.door == HttpDoor::kOpen) {
      open.insert(route.path);
      EXPECT_EQ(stand_->Curl(route.path, "", how).code, "200");
      continue;
    }
    EXPECT_EQ(stand_->Curl(route.path, "", how).code, "401");
    EXPECT_EQ(stand_->Curl(route.path, wrong, how).code, "401");
    EXPECT_EQ(stand_->Curl(route.path, revoked_, how).code, "401");
  }
  EXPECT_EQ(open, (std::set<std::string>{"/livez", "/readyz"}));
  EXPECT_EQ(stand_->Curl("/no/such/path", "").code, "401");
  EXPECT_EQ(stand_->Curl("/livez", "", {"--request", "POST"}).code, "401");
}

TEST_F(DoorsTest, HttpLeadsPastTheSameWrapper) {
  std::set<std::string> paths;
  std::set<std::string> gets;
  for (const auto& route : stand_->server().http_routes()) {
    (route.method == "GET" ? gets : paths).insert(route.path);
  }
  const std::string by_number = absl::StrCat(R"({"trial":{"trialId":")", run_, R"("}})");
  for (const MethodDescriptor* method : EveryMethod()) {
    const std::string path = "/" + PathOf(*method);
    if (paths.count(path) == 0) {
      EXPECT_TRUE(method->client_streaming() || method->service()->name() == "IngestService")
          << path;
      continue;
    }
    SCOPED_TRACE(path);
    if (method->server_streaming()) continue;  // below
    const AccessRule& rule = *FindRule(*method->input_type());
    // What changes nothing is there for a GET, too.
    const bool has_get = gets.count(path) > 0;
    EXPECT_EQ(has_get, method->options().idempotency_level() ==
                           google::protobuf::MethodOptions::NO_SIDE_EFFECTS);
    const auto ask = [&](const std::string& token) {
      const std::string body =
          rule.subject == Subject::kTrialId  ? absl::StrCat(R"({"trialId":")", run_, R"("})")
          : rule.subject == Subject::kPlace  ? absl::StrCat(R"({"place":)", by_number, "}")
          : rule.subject != Subject::kTrials ? "{}"
          : method->name() == "CompareTrials"
              ? absl::StrCat(R"({"trials":[{"trialId":")", run_, R"("}]})")
              : by_number;
      const auto answer = stand_->Curl(path, token, {"--json", body});
      if (has_get) {
        const auto got = stand_->Curl(path, token,
                                      {"--get", "--data", "connect=v1&encoding=json",
                                       "--data-urlencode", absl::StrCat("message=", body)});
        EXPECT_EQ(got.code, answer.code) << got.body;
        EXPECT_THAT(got.body, Not(HasSubstr(token == other_ ? "vision" : "speech")));
      }
      return answer;
    };
    const bool is_denied = rule.subject == Subject::kMaster || rule.right == Right::kIngest;
    const bool is_given = rule.subject == Subject::kList || rule.subject == Subject::kIngest;
    const std::string refusal = is_given ? "200" : is_denied ? "403" : "404";
    const auto refused = ask(other_);
    EXPECT_EQ(refused.code, refusal) << refused.body;
    EXPECT_THAT(refused.body, Not(HasSubstr("vision")));
    if (rule.right != Right::kRead) {
      EXPECT_EQ(ask(reader_).code, "403");
    }
    if (rule.right == Right::kRead && rule.subject == Subject::kTrials) {
      EXPECT_THAT(ask(reader_).code, AnyOf("200", "400"));
    }
  }
  // A stream's failure is its last envelope.
  const std::string length("\0\0\0\0", 4);
  const std::string envelope_file = stand_->Scratch("envelope");
  std::ofstream(envelope_file) << '\0' << length.substr(0, 3) << static_cast<char>(by_number.size())
                               << by_number;
  int streaming_count = 0;
  for (const MethodDescriptor* method : EveryMethod()) {
    const std::string path = "/" + PathOf(*method);
    if (!method->server_streaming() || paths.count(path) == 0) continue;
    SCOPED_TRACE(path);
    ++streaming_count;
    const auto ask = [&](const std::string& token) {
      return stand_->Curl(path, token,
                          {"--header", "Content-Type: application/connect+json", "--data-binary",
                           "@" + envelope_file});
    };
    EXPECT_THAT(ask(other_).body, HasSubstr("\"not_found\""));
    EXPECT_EQ(ask("").code, "401");
    if (FindRule(*method->input_type())->right != Right::kRead) {
      EXPECT_THAT(ask(reader_).body, HasSubstr("\"permission_denied\""));
    }
  }
  EXPECT_GE(streaming_count, 5);
}

TEST_F(DoorsTest, ListsAndScrapesTellOfWhatATokenReads) {
  // Silent for a minute they would not run any more.
  stand_->Record("vision", "run");
  stand_->Record("speech", "run");
  const auto list = [&](const std::string& token) {
    v1::ListTrialsResponse trials;
    const Called called =
        stand_->Call("stepwell.v1.QueryService/ListTrials", v1::ListTrialsRequest(), token);
    EXPECT_TRUE(trials.ParseFromString(called.bytes) && called.status.ok());
    std::set<std::string> projects;
    for (const v1::Trial& trial : trials.trials()) projects.insert(trial.project());
    return projects;
  };
  EXPECT_EQ(list(reader_), (std::set<std::string>{"vision"}));
  EXPECT_EQ(list(other_), (std::set<std::string>{"speech"}));
  EXPECT_EQ(list(ingester_), std::set<std::string>());
  EXPECT_EQ(list(all_), (std::set<std::string>{"speech", "vision"}));
  EXPECT_EQ(list(stand_->admin()), (std::set<std::string>{"speech", "vision"}));
  v1::ListTrialsRequest by_project;
  by_project.set_project("vision");
  EXPECT_EQ(
      stand_->Call("stepwell.v1.QueryService/ListTrials", by_project, other_).bytes.find("run"),
      std::string::npos);
  const auto targets = stand_->Curl("/sd", reader_);
  EXPECT_EQ(targets.code, "200");
  EXPECT_THAT(targets.body, HasSubstr("\"__meta_stepwell_project\":\"vision\""));
  EXPECT_THAT(targets.body, Not(HasSubstr("speech")));
  const auto scraped = stand_->Curl("/metrics", reader_);
  EXPECT_EQ(scraped.code, "200");
  EXPECT_THAT(scraped.body, Not(HasSubstr("speech")));
  EXPECT_THAT(scraped.body, Not(HasSubstr("stepwell_ingest_samples_total")));
  EXPECT_EQ(stand_->Curl("/metrics?trial=none", reader_).code, "403");
  EXPECT_EQ(stand_->Curl("/metrics?trial=none", all_).code, "200");
  EXPECT_THAT(stand_->Curl("/metrics", all_).body, HasSubstr("stepwell_ingest_samples_total"));
  EXPECT_EQ(stand_->Curl(absl::StrCat("/metrics?trial=", run_), reader_).code, "200");
  EXPECT_EQ(stand_->Curl(absl::StrCat("/metrics?trial=", run_), other_).code, "404");
}

TEST_F(DoorsTest, AStreamThatFollowsEndsWithItsToken) {
  const std::string token = stand_->MakeToken({"read:vision"});
  const auto stub = v1::QueryService::NewStub(stand_->ChannelWith(token));
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_trial_id(run_);
  grpc::ClientContext context;
  const auto reader = stub->FollowSamples(&context, request);
  v1::FollowSamplesResponse message;
  ASSERT_TRUE(reader->Read(&message));
  const absl::Time revoked = absl::Now();
  stand_->Revoke(token);
  while (reader->Read(&message)) {
  }
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(5));
  const grpc::Status end = reader->Finish();
  EXPECT_EQ(end.error_code(), StatusCode::UNAUTHENTICATED) << end.error_message();
}

TEST_F(DoorsTest, CommandsMakeListAndRevokeTokens) {
  const auto command = [&](std::vector<std::string> words, const std::string& token,
                           const std::string& log) {
    words.insert(words.begin(), BuiltProgram("stepwell"));
    words.insert(words.end(),
                 {"--server", stand_->server().addresses().grpc, "--tls-ca", stand_->ca_file()});
    ChildProcess child;
    child.Start(words, {{"STEPWELL_TOKEN", token}}, stand_->Scratch(log));
    const std::string ending = child.Wait(absl::Seconds(60));
    return ending + "\n" + DoorsStand::ReadFile(stand_->Scratch(log));
  };
  const std::string made =
      command({"token", "create", "ci", "--grant", "read:vision", "--expires", "1d", "--json"},
              stand_->admin(), "create");
  ASSERT_THAT(made, ::testing::StartsWith("exit 0"));
  const auto json = nlohmann::json::parse(made.substr(made.find('{')));
  const std::string text = json["text"];
  const std::string id = json["token"]["token_id"];
  EXPECT_THAT(command({"trials"}, text, "trials"), HasSubstr("run"));
  EXPECT_THAT(command({"token", "list"}, text, "list-reader"),
              HasSubstr("has no grant admin, which ListTokens wants"));
  const std::string listed = command({"token", "list"}, stand_->admin(), "list");
  EXPECT_THAT(listed, HasSubstr(id));
  EXPECT_THAT(listed, Not(HasSubstr(text.substr(22)))) << "the secret is told once";
  EXPECT_THAT(command({"token", "revoke", id}, stand_->admin(), "revoke"),
              HasSubstr("ci (" + id + ") is revoked."));
  EXPECT_THAT(command({"trials"}, text, "trials-after"), HasSubstr("or it was revoked"));
  EXPECT_THAT(command({"token", "create", "ci", "--grant", "fly:vision"}, stand_->admin(), "bad"),
              HasSubstr("grants: 'fly:vision' is none; allowed: read:PROJECT"));
  EXPECT_THAT(command({"token", "create", "ci", "--grant", "ingest:id:1999999999"}, stand_->admin(),
                      "future"),
              HasSubstr("grants: 'ingest:id:1999999999': there is no such trial"));
  EXPECT_THAT(command({"token", "revoke", "0123456789ab"}, stand_->admin(), "unknown"),
              HasSubstr("there is no token 0123456789ab"));
}

}  // namespace
}  // namespace stepwell::testing
