// What one token and one address may ask of a master: each limit reached over real gRPC and HTTP, whoever obeys RetryInfo
// is let in, others are undisturbed, and an agent that is slowed loses nothing.
#include <gmock/gmock.h>
#include <google/protobuf/util/time_util.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <filesystem>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/error_details.h"
#include "tests/e2e/rates_stand.h"

namespace stepwell::testing {
namespace {

using google::rpc::ErrorInfo;
using google::rpc::RetryInfo;
using ::testing::HasSubstr;

TEST_F(RatesTest, CallsBeyondTheLimitAreToldWhenToComeAgainAndAreLetInThen) {
  StartMaster({"--calls-per-second", "1"});
  grpc::Status refused;
  for (int i = 0; i < 30 && refused.ok(); ++i) refused = ListTrials();
  ASSERT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("the address 127.0.0.1 has used up its calls: allowed are 1 a second, 10 "
                        "at once; --calls-per-second is the limit"));
  const auto info = DetailOf<ErrorInfo>(refused);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "RATE_LIMIT");
  EXPECT_EQ(info->metadata().at("limit"), "calls-per-second");
  const auto retry = DetailOf<RetryInfo>(refused);
  ASSERT_TRUE(retry.has_value());
  const auto delay = absl::Nanoseconds(
      google::protobuf::util::TimeUtil::DurationToNanoseconds(retry->retry_delay()));
  EXPECT_GT(delay, absl::ZeroDuration());
  EXPECT_LE(delay, absl::Seconds(2));
  absl::SleepFor(delay);
  EXPECT_TRUE(ListTrials().ok());

  // The same over HTTP, and who comes from elsewhere goes on.
  Answer answer;
  for (int i = 0; i < 30 && answer.code != "429"; ++i) answer = List("127.0.0.1");
  EXPECT_EQ(answer.code, "429");
  EXPECT_THAT(answer.head, HasSubstr("\r\nRetry-After: "));
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json["code"], "resource_exhausted");
  EXPECT_EQ(json["details"][1]["type"], "google.rpc.RetryInfo");
  EXPECT_EQ(List("127.0.0.2").code, "200");
  EXPECT_GE(Counted("stepwell_limit_refusals_total{limit=\"calls\"}"), 2);
}

TEST_F(RatesTest, StreamsAndUnaryWritesAreCallsToo) {
  StartMaster({"--calls-per-second", "1"});
  grpc::Status refused;
  for (int i = 0; i < 30 && refused.ok(); ++i) refused = RawStream(*client_).Finish();
  ASSERT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ASSERT_TRUE(DetailOf<ErrorInfo>(refused).has_value());
  EXPECT_EQ(DetailOf<ErrorInfo>(refused)->metadata().at("limit"), "calls-per-second");
  EXPECT_TRUE(DetailOf<RetryInfo>(refused).has_value());
  absl::SleepFor(absl::Seconds(2));
  grpc::Status written;
  for (int i = 0; i < 30 && written.ok(); ++i) {
    grpc::ClientContext context;
    v1::WriteChunksResponse response;
    written = client_->ingest().WriteChunks(&context, v1::WriteChunksRequest(), &response);
  }
  EXPECT_EQ(written.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << "though it had no byte";
}

TEST_F(RatesTest, WritersThatOpenAreSlowedAndCallsGoOnMeanwhile) {
  StartMaster({"--opens-per-second", "2"});
  RawStream stream(*client_);
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(stream.Send(OpenMessage({.writer = Uuid::Random(), .external_id = "many"})));
  }
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(stream.WaitFor([](const auto& answer) { return answer.has_opened(); }).has_value());
    EXPECT_TRUE(ListTrials().ok());
  }
  // 20 at once.
  EXPECT_GE(absl::Now() - begin, absl::Seconds(4));
  EXPECT_GT(Counted("stepwell_limit_slowed_seconds_total{limit=\"opens\"}"), 0);
}

TEST_F(RatesTest, WhoIsSlowedAgainAndAgainIsStillToldThatTheConnectionLives) {
  StartMaster({"--ingest-samples-per-second", "1000"});
  const Uuid busy = Uuid::Random();
  const Uuid silent = Uuid::Random();
  RawStream stream(*client_);
  Open(stream, silent, "slow");
  Open(stream, busy, "slow", 1);
  ASSERT_TRUE(stream.Send(DefinitionMessage(busy, {{}})));
  // 10,000 at once, and each of the others waits for a second.
  for (std::uint64_t sequence = 1; sequence <= 25; ++sequence) {
    ASSERT_TRUE(stream.Send(
        ChunkMessage(busy, sequence, OneColumn(1, NowUs(), 1, std::vector<double>(1000, 1.5)))));
  }
  EXPECT_TRUE(stream.WaitAck(silent, 0, absl::Seconds(14)).has_value())
      << "the other writer's messages wait behind";
  EXPECT_TRUE(stream.WaitAck(busy, 25, absl::Seconds(30)).has_value());
}

TEST_F(RatesTest, AStreamThatMakesTooManySeriesIsSlowedAndAllAreMade) {
  StartMaster({"--series-per-second", "10"});
  const Uuid writer = Uuid::Random();
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, writer, "series").trial_id();
  const absl::Time begin = absl::Now();
  std::uint32_t ref = 1;
  for (int message = 0; message < 4; ++message) {
    std::vector<DefinitionFields> definitions;
    for (int i = 0; i < 50; ++i) {
      definitions.push_back({.ref = ++ref, .name = absl::StrCat("m", ref)});
    }
    ASSERT_TRUE(stream.Send(DefinitionMessage(writer, definitions)));
  }
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(ref, NowUs(), 1000, {1, 2}))));
  ASSERT_TRUE(stream.WaitAck(writer, 1, absl::Seconds(60)).has_value()) << master_->LogTail();
  // 150 made, of which 100 at once: the last message waits for 50 at 10 a second.
  EXPECT_GE(absl::Now() - begin, absl::Seconds(4));
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.series where trial_id = $1", trial_id), 201);
  EXPECT_GT(Counted("stepwell_limit_slowed_seconds_total{limit=\"series\"}"), 0);
  // Known ones are no new ones.
  RawStream again(*client_);
  const absl::Time reopened = absl::Now();
  Open(again, Uuid::Random(), "series", 1);
  EXPECT_LT(absl::Now() - reopened, absl::Seconds(30));
}

class FewCallsTest : public TokenRatesTest {
 protected:
  Words more() const override { return {"--calls-per-second", "1"}; }
  std::string shared() const override { return ""; }
};

TEST_F(FewCallsTest, WhatIsNoMethodOfAServiceIsACallToo) {
  const std::string reader = MakeToken("read:*").text();
  grpc::TemplatedGenericStub<v1::ListTrialsRequest, v1::ListTrialsResponse> stub(Channel());
  for (const std::string method : {"/grpc.health.v1.Health/Check", "/no.such/Method"}) {
    SCOPED_TRACE(method);
    grpc::Status refused;
    for (int i = 0; i < 30 && refused.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED; ++i) {
      grpc::ClientContext context;
      context.AddMetadata("authorization", "Bearer " + reader);
      v1::ListTrialsRequest request;
      v1::ListTrialsResponse response;
      absl::Notification done;
      stub.UnaryCall(&context, method, {}, &request, &response, [&](grpc::Status status) {
        refused = std::move(status);
        done.Notify();
      });
      done.WaitForNotification();
    }
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(DetailOf<RetryInfo>(refused).has_value());
  }
}

class WrongTokensTest : public TokenRatesTest {};

TEST_F(WrongTokensTest, GuessingIsSlowedByAddressAndNobodyElseIsLockedOut) {
  EXPECT_EQ(With("127.0.0.3", token_).code, "200");
  int wrong = 0;
  Answer last;
  for (int i = 0; i < 40 && last.code != "429"; ++i, ++wrong) {
    last = With("127.0.0.3", absl::StrCat(token_, i));
    EXPECT_THAT(last.code, ::testing::AnyOf("401", "429"));
  }
  EXPECT_EQ(last.code, "429") << last.body;
  EXPECT_GE(wrong, 20);
  EXPECT_THAT(last.head, HasSubstr("\r\nRetry-After: "));
  EXPECT_THAT(last.body, HasSubstr("too many wrong tokens were shown from here"));
  const auto told = nlohmann::json::parse(last.body);
  ASSERT_EQ(told["details"].size(), 2u) << last.body;
  EXPECT_EQ(told["details"][1]["type"], "google.rpc.RetryInfo");
  EXPECT_EQ(With("127.0.0.3", token_).code, "200") << "it was right from there before";
  EXPECT_EQ(With("127.0.0.4", token_).code, "200") << "another address";
  for (int i = 0; i < 30; ++i) EXPECT_EQ(With("127.0.0.5", "wrong").code, "401") << "a proxy's";
  // One that is right, from where only wrong ones came: when it was told to.
  // One more is allowed each three seconds; where that passes just now, once more from somewhere else.
  std::string from;
  Answer right;
  for (int attempt = 0; attempt < 5 && right.code != "429"; ++attempt) {
    from = absl::StrCat("127.0.1.", 1 + attempt);
    Answer first;
    for (int i = 0; i < 60 && first.code != "429"; ++i) first = With(from, "wrong");
    EXPECT_EQ(first.code, "429");
    right = With(from, token_);
  }
  EXPECT_EQ(right.code, "429");
  EXPECT_TRUE(Eventually([&] { return With(from, token_).code == "200"; }, absl::Seconds(20)));
}

TEST_F(WrongTokensTest, GuessesByGrpcAreCountedWithThoseByHttpAndToldWhenToComeAgain) {
  const auto guessing = Channel();
  grpc::Status last;
  int wrong = 0;
  while (last.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED && wrong < 60) {
    last = Ask(guessing, absl::StrCat(token_, wrong++));
    EXPECT_FALSE(last.ok());
  }
  EXPECT_EQ(last.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GE(wrong, 20);
  EXPECT_THAT(last.error_details(), HasSubstr("google.rpc.RetryInfo"));
  // From the same address, whatever the connection and the port.
  EXPECT_EQ(Ask(Channel(), token_).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << "told apart it would be a guess";
  EXPECT_EQ(With("127.0.0.1", token_).code, "429");
  EXPECT_EQ(With("127.0.0.4", token_).code, "200") << "another address";
  EXPECT_TRUE(Eventually([&] { return Ask(guessing, token_).ok(); }, absl::Seconds(20)));
  EXPECT_TRUE(Ask(Channel(), token_).ok()) << "it was right from here before";
}

TEST_F(WrongTokensTest, ARevokedTokenThatIsShownAgainAndAgainKeepsNobodyOut) {
  const auto stub = v1::TokenService::NewStub(Channel());
  const v1::CreateTokenResponse made = MakeToken("write:vision");
  const std::string id = made.token().token_id();
  const std::string text = made.text();
  EXPECT_EQ(With("127.0.0.3", text).code, "200");
  {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token_);
    v1::RevokeTokenRequest request;
    request.set_token_id(id);
    v1::RevokeTokenResponse response;
    ASSERT_TRUE(stub->RevokeToken(&context, request, &response).ok());
  }
  const auto shown_in_vain = [&](const std::string& from) {
    for (int i = 0; i < 40; ++i) EXPECT_EQ(With(from, text).code, "401");
  };
  shown_in_vain("127.0.0.6");
  EXPECT_EQ(With("127.0.0.6", token_).code, "200") << "its first time from there";
  // A master that begins knows it, too.
  master_->Kill();
  ASSERT_TRUE(master_->StartAndWait({})) << master_->LogTail();
  ASSERT_TRUE(
      Eventually([&] { return With("127.0.0.8", token_).code == "200"; }, absl::Seconds(20)));
  shown_in_vain("127.0.0.7");
  EXPECT_EQ(With("127.0.0.7", token_).code, "200");
}

TEST_F(WrongTokensTest, AConnectionIsHeldToFewBytesUntilATokenWasShownThere) {
  const auto send_much = [this](const std::shared_ptr<grpc::Channel>& channel,
                                const std::string& token) {
    const auto stub = v1::QueryService::NewStub(channel);
    std::vector<grpc::StatusCode> codes;
    for (int i = 0; i < 6; ++i) {
      grpc::ClientContext context;
      context.AddMetadata("authorization", "Bearer " + token);
      v1::ListTrialsRequest request;
      request.set_page_token(std::string(4 << 20, 'x'));
      v1::ListTrialsResponse response;
      codes.push_back(stub->ListTrials(&context, request, &response).error_code());
    }
    return codes;
  };
  const auto known = Channel();
  ASSERT_TRUE(Ask(known, token_).ok());
  EXPECT_THAT(send_much(known, token_), ::testing::Each(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(master_->CountInLog("connection_ended"), 0) << "24 MiB of who is known";
  EXPECT_THAT(send_much(Channel(), "wrong"),
              ::testing::Contains(grpc::StatusCode::UNAUTHENTICATED));
  EXPECT_TRUE(
      Eventually([&] { return master_->CountInLog("connection_ended") > 0; }, absl::Seconds(10)));
  EXPECT_GT(Counted("stepwell_limit_refusals_total{limit=\"strangers\"}", Showing(token_)), 0);
  EXPECT_TRUE(Ask(known, token_).ok());
}

class SharedConnectionTest : public WrongTokensTest {
 protected:
  std::string shared() const override { return "127.0.0.1"; }
};

TEST_F(SharedConnectionTest, AProxysConnectionOfGrpcMayShowWhatItsClientsDo) {
  const auto proxy = Channel();
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(Ask(proxy, absl::StrCat(token_, i)).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
  EXPECT_TRUE(Ask(proxy, token_).ok());
}

class RefusedCredentialsTest : public WrongTokensTest {
 protected:
  Words more() const override { return {"--opens-per-second", "2"}; }
};

TEST_F(RefusedCredentialsTest, CostTheirStreamWhatAnOpenDoesAndItsWriterGoesOn) {
  const std::string reader = MakeToken("read:*").text();
  const auto stub = v1::IngestService::NewStub(Channel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  context.AddMetadata("authorization", "Bearer " + MakeToken("write:*").text());
  const auto stream = stub->StreamChunks(&context);
  const Uuid writer = Uuid::Random();
  ASSERT_TRUE(stream->Write(OpenMessage({.writer = writer, .external_id = "run"})));
  v1::StreamChunksResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  ASSERT_TRUE(answer.has_opened()) << answer.ShortDebugString();
  const absl::Time begin = absl::Now();
  v1::StreamChunksRequest shown;
  shown.mutable_credential()->set_writer(writer.ToBytes());
  shown.mutable_credential()->set_token(reader);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(stream->Write(shown));
  for (int refused = 0; refused < 30;) {
    ASSERT_TRUE(stream->Read(&answer));
    if (!answer.has_refused()) continue;
    EXPECT_EQ(answer.refused().reason(), "GRANT_MISSING");
    EXPECT_FALSE(answer.refused().terminal());
    ++refused;
  }
  // 20 at once, the others at 2 a second.
  EXPECT_GE(absl::Now() - begin, absl::Seconds(4));
  ASSERT_TRUE(stream->Write(DefinitionMessage(writer, {{}})));
  ASSERT_TRUE(stream->Write(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1, {1.5}))));
  do {
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_FALSE(answer.has_refused()) << answer.ShortDebugString();
  } while (answer.ack().committed_sequence() < 1);
  context.TryCancel();
  (void)stream->Finish();
}

class SlowedAgentTest : public StartedAgentTest {
 protected:
  void SetUp() override {
    StartMaster({"--ingest-samples-per-second", "2000"});
    std::filesystem::create_directory(temporary());
  }
};

TEST_F(SlowedAgentTest, AnAgentBeyondItsQuotaIsSlowedAndAllItsSamplesArrive) {
  constexpr int kSamples = 40'000;
  const absl::Time begin = absl::Now();
  // Slowly enough for a ring, fast enough for the quota: 8000 a second.
  EXPECT_EQ(Run(Trial("return", kSamples, 5),
                Environment("slowed", {{"STEPWELL_AGENT_IDLE_EXIT", "60"}})),
            "exit 7");
  EXPECT_TRUE(Eventually([&] { return IsStored("slowed", kSamples); }, absl::Seconds(90)))
      << Stored("slowed").size() << AgentLog();
  // 20,000 at once, the others at 2000 a second.
  EXPECT_GE(absl::Now() - begin, absl::Seconds(7));
  const std::string metrics = [&] {
    const std::string log = scratch_ / "metrics";
    ChildProcess curl;
    curl.Start({"/usr/bin/curl", "--silent",
                absl::StrCat("http://", master_->http_address(), "/metrics?trial=none")},
               {}, log);
    EXPECT_EQ(curl.Wait(absl::Seconds(30)), "exit 0");
    return ReadText(log);
  }();
  EXPECT_THAT(metrics, HasSubstr("stepwell_limit_slowed_seconds_total{limit=\"ingest_samples\"}"));
  EXPECT_THAT(metrics, ::testing::Not(HasSubstr(
                           "stepwell_limit_slowed_seconds_total{limit=\"ingest_samples\"} 0\n")));
  for (const pid_t agent : Agents()) kill(agent, SIGTERM);
}

// A master that has no place, and says so.
class FullMaster final : public v1::IngestService::Service {
 public:
  grpc::Status StreamChunks(
      grpc::ServerContext* /*call*/,
      grpc::ServerReaderWriter<v1::StreamChunksResponse, v1::StreamChunksRequest>* /*stream*/)
      override {
    ++tries;
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(5);
    google::rpc::Status details;
    details.add_details()->PackFrom(retry);
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "come later", details.SerializeAsString()};
  }
  std::atomic<int> tries{0};
};

TEST(AgentRetryTest, AnAgentComesAgainNoSoonerThanItWasTold) {
  FullMaster full;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&full);
  const auto server = builder.BuildAndStart();
  const ScratchDirectory scratch;
  const std::string temporary = scratch / "tmp";
  std::filesystem::create_directory(temporary);
  ChildProcess trial;
  trial.Start({BuiltProgram("small_trial"), "return", "100", "14"},
              {{"STEPWELL_AGENT", ""},
               {"STEPWELL_AGENT_IDLE_EXIT", "1"},
               {"STEPWELL_SERVER", absl::StrCat("127.0.0.1:", port)},
               {"STEPWELL_SYSTEM_ROOT", "/no/such/root"},
               {"STEPWELL_TRIAL", "waits"},
               {"TMPDIR", temporary}},
              scratch / "trial");
  ASSERT_TRUE(Eventually([&] { return full.tries > 0; }, absl::Seconds(20)));
  // By its own delays it would have come five times and more.
  absl::SleepFor(absl::Seconds(8));
  EXPECT_EQ(full.tries, 2) << ReadText(
      absl::StrCat(temporary, "/stepwell-", geteuid(), "/f1/agent.log"));
  EXPECT_EQ(trial.Wait(absl::Seconds(60)), "exit 7");
  server->Shutdown();
}

}  // namespace
}  // namespace stepwell::testing
