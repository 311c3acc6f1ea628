// Tokens that are fetched for one trial: who gets them, what they open, and that they end as who made them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/doors_stand.h"
#include "tests/support/child_process.h"
#include "tests/support/client_certificate.h"

namespace stepwell::testing {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFetch[] = "stepwell.v1.TokenService/FetchIngestToken";

v1::FetchIngestTokenRequest Of(const std::string& project, const std::string& name) {
  v1::FetchIngestTokenRequest request;
  request.mutable_trial()->set_project(project);
  request.mutable_trial()->set_external_id(name);
  return request;
}

class FetchDoorsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    stand_ = new DoorsStand(AsksCertificates::kYes);
    run_ = stand_->Record("vision", "run");
  }
  static void TearDownTestSuite() {
    delete stand_;
    stand_ = nullptr;
  }
  struct Fetched {
    StatusCode code = StatusCode::OK;
    std::string why;
    v1::FetchIngestTokenResponse response;
    const std::string& text() const { return response.text(); }
    std::int64_t seconds() const {
      return (response.token().expires_time_us() - response.token().created_time_us()) / 1'000'000;
    }
  };
  static Fetched FetchOn(const std::shared_ptr<grpc::Channel>& channel,
                         const v1::FetchIngestTokenRequest& request, const std::string& shown) {
    const Called called = DoorsStand::CallOn(channel, kFetch, request, shown);
    Fetched fetched{called.status.error_code(), called.status.error_message(), {}};
    EXPECT_TRUE(fetched.response.ParseFromString(called.bytes));
    return fetched;
  }
  static Fetched Fetch(const std::string& shown, const std::string& project,
                       const std::string& name, int seconds = 0) {
    v1::FetchIngestTokenRequest request = Of(project, name);
    request.set_lifetime_seconds(seconds);
    return FetchOn(stand_->channel(), request, shown);
  }
  // What the master says of a writer of that trial that opens.
  static v1::StreamChunksResponse Opening(const std::string& token, const std::string& project,
                                          const std::string& name) {
    v1::WriteChunksRequest request;
    auto open = OpenMessage({.writer = Uuid::Random(), .external_id = name});
    open.mutable_open()->set_project(project);
    *request.add_messages() = open;
    v1::WriteChunksResponse response;
    const Called called = stand_->Call("stepwell.v1.IngestService/WriteChunks", request, token);
    EXPECT_TRUE(response.ParseFromString(called.bytes));
    return response.messages_size() == 0 ? v1::StreamChunksResponse() : response.messages(0);
  }
  static bool Opens(const std::string& token, const std::string& project, const std::string& name) {
    return Opening(token, project, name).has_opened();
  }
  static StatusCode List(const std::string& token) {
    return stand_->Call("stepwell.v1.QueryService/ListTrials", v1::ListTrialsRequest(), token)
        .status.error_code();
  }

  static DoorsStand* stand_;
  static std::int64_t run_;
};

DoorsStand* FetchDoorsTest::stand_ = nullptr;
std::int64_t FetchDoorsTest::run_ = 0;

TEST_F(FetchDoorsTest, WhoeverMayIngestATrialGetsATokenOfItAlone) {
  const TlsPair agent = OddClient(stand_->ca(), {.dns = {"agent.lab"}});
  ASSERT_TRUE(stand_->Give("dns:agent.lab", {"write:vision"}).ok());
  const std::string writer = stand_->MakeToken({"write:vision", "read:*"});
  const std::string ingester = stand_->MakeToken({"ingest:vision/new-run"});
  const struct {
    const char* name;
    Fetched fetched;
    std::string made_by;
  } rows[] = {
      {"admin", Fetch(stand_->admin(), "vision", "new-run"), "admin:"},
      {"write", Fetch(writer, "vision", "new-run"), writer.substr(9, 12)},
      {"ingest", Fetch(ingester, "vision", "new-run"), ingester.substr(9, 12)},
      {"certificate", FetchOn(stand_->ChannelAs(agent), Of("vision", "new-run"), ""), ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_EQ(row.fetched.code, StatusCode::OK) << row.fetched.why;
    EXPECT_FALSE(row.fetched.response.renews());
    EXPECT_EQ(row.fetched.seconds(), 3600);
    EXPECT_THAT(row.fetched.response.token().made_by(), HasSubstr(row.made_by));
    ASSERT_EQ(row.fetched.response.token().grants_size(), 1);
    EXPECT_EQ(row.fetched.response.token().grants(0), "ingest:vision/new-run");
    const std::string& text = row.fetched.text();
    EXPECT_TRUE(Opens(text, "vision", "new-run"));
    EXPECT_EQ(Opening(text, "vision", "run").refused().reason(), "GRANT_MISSING");
    EXPECT_THAT(
        stand_->Call("stepwell.v1.QueryService/ListTrials", v1::ListTrialsRequest(), text).bytes,
        Not(HasSubstr("vision")));
    EXPECT_EQ(Fetch(text, "vision", "run").code, StatusCode::PERMISSION_DENIED);
    const Fetched renewed = Fetch(text, "vision", "new-run", 600);
    ASSERT_EQ(renewed.code, StatusCode::OK) << renewed.why;
    EXPECT_TRUE(renewed.response.renews());
    EXPECT_EQ(renewed.seconds(), 600);
    EXPECT_EQ(renewed.response.token().made_by(), row.fetched.response.token().made_by());
    EXPECT_TRUE(Opens(renewed.text(), "vision", "new-run"));
    EXPECT_TRUE(Opens(text, "vision", "new-run")) << "the old one is good until its end";
  }
}

TEST_F(FetchDoorsTest, NobodyElseGetsOneAndWrongRequestsHearWhatIsAllowed) {
  const std::string reader = stand_->MakeToken({"read:*"});
  const std::string other = stand_->MakeToken({"write:speech"});
  for (const std::string& token : {reader, other}) {
    for (const char* name : {"run", "no-such-run"}) {
      const Fetched refused = Fetch(token, "vision", name);
      EXPECT_EQ(refused.code, StatusCode::PERMISSION_DENIED);
      EXPECT_THAT(refused.why, HasSubstr(absl::StrCat("no grant ingest:vision/", name)));
    }
  }
  EXPECT_EQ(Fetch("", "vision", "run").code, StatusCode::UNAUTHENTICATED);
  for (const int seconds : {-1, 59, 86'401}) {
    const Fetched refused = Fetch(stand_->admin(), "vision", "run", seconds);
    EXPECT_EQ(refused.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.why, HasSubstr("allowed are 60 to 86400"));
  }
  EXPECT_EQ(Fetch(stand_->admin(), "vision", "").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Fetch(stand_->admin(), "no project", "run").code, StatusCode::INVALID_ARGUMENT);
  v1::FetchIngestTokenRequest by_number;
  by_number.mutable_trial()->set_trial_id(2'000'000'000);
  EXPECT_THAT(FetchOn(stand_->channel(), by_number, stand_->admin()).why,
              HasSubstr("there is no such trial"));
  by_number.mutable_trial()->set_trial_id(run_);
  const Fetched numbered =
      FetchOn(stand_->channel(), by_number, stand_->MakeToken({"write:vision"}));
  ASSERT_EQ(numbered.code, StatusCode::OK) << numbered.why;
  EXPECT_TRUE(Opens(numbered.text(), "vision", "run"));
  const Fetched by_name = Fetch(numbered.text(), "vision", "run");
  ASSERT_EQ(by_name.code, StatusCode::OK) << by_name.why;
  EXPECT_EQ(by_name.response.token().grants(0), absl::StrCat("ingest:id:", run_))
      << "no more than what was shown";
}

TEST_F(FetchDoorsTest, EndsWithItsMakerAndCanBeRevokedByItself) {
  const std::string maker = stand_->MakeToken({"write:vision"}, 3600);
  const Fetched first = Fetch(maker, "vision", "run", 7200);
  EXPECT_LE(first.seconds(), 3600) << "not beyond its maker";
  const Fetched renewed = Fetch(first.text(), "vision", "run", 7200);
  EXPECT_LE(renewed.seconds(), 3600) << "a renewal neither";
  const Fetched other = Fetch(maker, "vision", "run");
  stand_->Revoke(renewed.text());
  EXPECT_EQ(List(first.text()), StatusCode::UNAUTHENTICATED) << "of its family";
  EXPECT_EQ(List(renewed.text()), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(List(other.text()), StatusCode::OK);
  stand_->Revoke(maker);
  EXPECT_EQ(List(other.text()), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Fetch(maker, "vision", "run").code, StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Fetch(other.text(), "vision", "run").code, StatusCode::UNAUTHENTICATED);
  const std::string brief = stand_->MakeToken({"write:vision"}, 2);
  const Fetched of_brief = Fetch(brief, "vision", "run");
  EXPECT_EQ(List(of_brief.text()), StatusCode::OK);
  EXPECT_TRUE(Eventually([&] { return List(of_brief.text()) == StatusCode::UNAUTHENTICATED; },
                         absl::Seconds(5)))
      << "its maker expired";
}

TEST_F(FetchDoorsTest, AStreamThatShowsOneEndsWithItsMaker) {
  const std::string maker = stand_->MakeToken({"write:vision"});
  const Fetched fetched = Fetch(maker, "vision", "run");
  const auto stub = v1::IngestService::NewStub(stand_->ChannelWith(fetched.text()));
  grpc::ClientContext context;
  const auto stream = stub->StreamChunks(&context);
  auto open = OpenMessage({.writer = Uuid::Random(), .external_id = "run"});
  open.mutable_open()->set_project("vision");
  ASSERT_TRUE(stream->Write(open));
  v1::StreamChunksResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_TRUE(response.has_opened());
  const absl::Time revoked = absl::Now();
  stand_->Revoke(maker);
  while (stream->Read(&response)) {
  }
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(5));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
}

// A writer that is open shows another one: that counts from then on, and one that is refused changes nothing.
TEST_F(FetchDoorsTest, AWriterThatIsOpenOutlivesTheTokenThatItOpenedWith) {
  const std::string own = stand_->MakeToken({"write:vision"});
  const std::string first_maker = stand_->MakeToken({"write:vision"});
  const std::string second_maker = stand_->MakeToken({"write:vision"});
  const std::string third_maker = stand_->MakeToken({"write:vision"});
  const std::string third = Fetch(third_maker, "vision", "run").text();
  const std::string first = Fetch(first_maker, "vision", "run").text();
  const std::string second = Fetch(second_maker, "vision", "run").text();
  const std::string others = Fetch(second_maker, "vision", "another-run").text();
  const auto stub = v1::IngestService::NewStub(stand_->ChannelWith(own));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  const auto stream = stub->StreamChunks(&context);
  const Uuid writer = Uuid::Random();
  const Uuid beside = Uuid::Random();
  const Uuid of_second = Uuid::Random();
  for (const auto& [each, token] :
       {std::pair(writer, first), std::pair(beside, first), std::pair(of_second, second)}) {
    auto open = OpenMessage({.writer = each, .external_id = "run"});
    open.mutable_open()->set_project("vision");
    open.mutable_open()->set_token(token);
    ASSERT_TRUE(stream->Write(open));
    v1::StreamChunksResponse opened;
    ASSERT_TRUE(stream->Read(&opened));
    ASSERT_TRUE(opened.has_opened()) << opened.ShortDebugString();
  }
  const auto show = [&](const std::string& token) {
    v1::StreamChunksRequest message;
    message.mutable_credential()->set_writer(writer.ToBytes());
    message.mutable_credential()->set_token(token);
    return stream->Write(message);
  };
  // Directives may come between.
  const auto next_refusal = [&] {
    v1::StreamChunksResponse response;
    while (stream->Read(&response)) {
      if (response.has_refused()) return response.refused();
    }
    return v1::Refused();
  };
  // What was sent so far was looked at.
  const auto settle = [&] {
    v1::StreamChunksRequest unknown;
    unknown.mutable_credential()->set_writer(Uuid::Random().ToBytes());
    EXPECT_TRUE(stream->Write(unknown));
    EXPECT_EQ(next_refusal().reason(), "NOT_OPEN");
  };
  const std::string wrong =
      second.substr(0, second.size() - 1) + (second.back() == 'a' ? 'b' : 'a');
  ASSERT_TRUE(show(wrong));
  v1::Refused refused = next_refusal();
  EXPECT_EQ(refused.reason(), "TOKEN_REFUSED");
  EXPECT_EQ(refused.writer(), writer.ToBytes());
  EXPECT_FALSE(refused.terminal());
  ASSERT_TRUE(show(others));
  refused = next_refusal();
  EXPECT_EQ(refused.reason(), "GRANT_MISSING");
  EXPECT_FALSE(refused.terminal());
  ASSERT_TRUE(show(second));
  // What it opened with ends: the one beside it, which showed no other, ends with that.
  settle();
  stand_->Revoke(first_maker);
  refused = next_refusal();
  EXPECT_EQ(refused.writer(), beside.ToBytes());
  EXPECT_EQ(refused.reason(), "TOKEN_REFUSED");
  EXPECT_TRUE(refused.terminal());
  // Without one of its own it goes on with the stream's: what it showed before may end, as it does for another writer.
  ASSERT_TRUE(show(""));
  settle();
  stand_->Revoke(second_maker);
  EXPECT_EQ(next_refusal().writer(), of_second.ToBytes());
  settle();
  // It goes on, until that ends, too.
  ASSERT_TRUE(show(third));
  settle();
  stand_->Revoke(third_maker);
  refused = next_refusal();
  EXPECT_EQ(refused.writer(), writer.ToBytes());
  EXPECT_TRUE(refused.terminal());
  context.TryCancel();
  (void)stream->Finish();
}

TEST_F(FetchDoorsTest, LaunchersFetchByTheCommandOrByHttpAndListsLeaveThemOut) {
  const std::string maker = stand_->MakeToken({"write:speech"});
  const TlsPair own = OddClient(stand_->ca(), {.dns = {"launcher.lab"}});
  stand_->Write("l.pem", own.cert_pem);
  stand_->Write("l.key", own.key_pem);
  const auto command = [&](std::vector<std::string> words, const std::string& token) {
    static int count = 0;
    words.insert(words.begin(), BuiltProgram("stepwell"));
    words.insert(words.end(),
                 {"--server", stand_->server().addresses().grpc, "--tls-ca", stand_->ca_file(),
                  "--tls-cert", stand_->Scratch("l.pem"), "--tls-key", stand_->Scratch("l.key")});
    ChildProcess child;
    const std::string log = stand_->Scratch(absl::StrCat("command-", ++count));
    child.Start(words, {{"STEPWELL_TOKEN", token}}, log);
    const std::string ending = child.Wait(absl::Seconds(60));
    return ending + "\n" + DoorsStand::ReadFile(log);
  };
  const std::string said =
      command({"token", "fetch", "--trial", "speech/a/b", "--expires", "2m", "--json"}, maker);
  ASSERT_TRUE(absl::StartsWith(said, "exit 0")) << said;
  const auto json = nlohmann::json::parse(said.substr(said.find('{')));
  EXPECT_TRUE(Opens(json["text"].get<std::string>(), "speech", "a/b"));
  EXPECT_THAT(command({"token", "fetch", "--trial", "vision/run"}, maker),
              HasSubstr("no grant ingest:vision/run"));
  EXPECT_THAT(command({"token", "list"}, stand_->admin()), Not(HasSubstr("ingest:speech/a/b")));
  EXPECT_THAT(command({"token", "list", "--fetched"}, stand_->admin()),
              HasSubstr("ingest:speech/a/b"));
  const auto answered =
      stand_->Curl("/stepwell.v1.TokenService/FetchIngestToken", maker,
                   {"--cert", stand_->Scratch("l.pem"), "--key", stand_->Scratch("l.key"), "--json",
                    R"({"trial":{"project":"speech","externalId":"run"}})"});
  EXPECT_EQ(answered.code, "200") << answered.body;
  EXPECT_TRUE(
      Opens(nlohmann::json::parse(answered.body)["text"].get<std::string>(), "speech", "run"));
}

}  // namespace
}  // namespace stepwell::testing
