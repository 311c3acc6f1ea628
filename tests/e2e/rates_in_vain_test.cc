// Rates hold who asks in vain as they hold who is served: messages that nobody takes, calls that cannot be read; and each
// token by itself, also where an address is many's.
#include <gmock/gmock.h>

#include <functional>

#include "tests/e2e/error_details.h"
#include "tests/e2e/rates_stand.h"

namespace stepwell::testing {
namespace {

using google::rpc::ErrorInfo;
using google::rpc::RetryInfo;
using ::testing::HasSubstr;

constexpr std::size_t kMessageBytes = 1'000'000;

v1::StreamChunksRequest Padded(v1::StreamChunksRequest message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
      1000, std::string(kMessageBytes, 'x'));
  return message;
}

TEST_F(RatesTest, MessagesThatNobodyTakesAreHeldAndTheStreamGoesOn) {
  StartMaster({"--ingest-bytes-per-second", absl::StrCat(kMessageBytes)});
  const Uuid writer = Uuid::Random();
  const Uuid closed = Uuid::Random();
  RawStream stream(*client_);
  Open(stream, writer, "held");
  const std::string body(kMessageBytes, 'x');
  const auto chunk = [&](const Uuid& of, std::uint64_t sequence, int added) {
    v1::StreamChunksRequest message = ChunkMessage(of, sequence, body);
    message.mutable_chunk()->set_crc32c(message.chunk().crc32c() + added);
    return message.SerializeAsString();
  };
  const auto padded = [](const std::function<void(v1::StreamChunksRequest&)>& make) {
    v1::StreamChunksRequest message;
    make(message);
    // Within it.
    const auto* field = message.GetDescriptor()->FindFieldByNumber(message.message_case());
    auto& inner = *message.GetReflection()->MutableMessage(&message, field);
    inner.GetReflection()->MutableUnknownFields(&inner)->AddLengthDelimited(
        1000, std::string(kMessageBytes, 'x'));
    return message.SerializeAsString();
  };
  v1::StreamChunksRequest garbage;
  garbage.GetReflection()->MutableUnknownFields(&garbage)->AddLengthDelimited(
      v1::StreamChunksRequest::kOpenFieldNumber, std::string(kMessageBytes, '\xff'));
  const struct {
    const char* name;
    std::string bytes;
    const char* reason;
  } rows[] = {
      {"a writer that is not open", chunk(closed, 1, 0), "NOT_OPEN"},
      {"sequence 0", chunk(writer, 0, 0), "SEQUENCE_RANGE"},
      {"a wrong checksum", chunk(writer, 1, 1), "CHECKSUM"},
      {"bytes that are no message", garbage.SerializeAsString(), "MALFORMED"},
      {"a kind that is not known", Padded({}).SerializeAsString(), "MESSAGE_UNKNOWN"},
      {"an Open without a trial",
       padded([&](auto& message) { message.mutable_open()->set_writer(closed.ToBytes()); }),
       "TRIAL_SELECTOR"},
      {"a heartbeat of a writer that is not open",
       padded([&](auto& message) { message.mutable_heartbeat()->set_writer(closed.ToBytes()); }),
       "NOT_OPEN"},
  };
  const auto send = [&](const std::string& bytes, const std::string& reason, int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(stream.SendBytes(bytes));
    for (int i = 0; i < count; ++i) {
      const auto refused = [&](const v1::StreamChunksResponse& answer) {
        return answer.has_refused() && answer.refused().reason() == reason;
      };
      ASSERT_TRUE(stream.WaitFor(refused, absl::Seconds(30)).has_value());
    }
  };
  // Ten seconds' worth comes at once.
  send(rows[0].bytes, rows[0].reason, 11);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const absl::Time begin = absl::Now();
    ASSERT_NO_FATAL_FAILURE(send(row.bytes, row.reason, 3));
    // What came before is owed still: a second for each.
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(1500));
  }
  ASSERT_TRUE(stream.Send(DefinitionMessage(writer, {{}})));
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1, {1.5}))));
  EXPECT_TRUE(stream.WaitAck(writer, 1).has_value());
  EXPECT_GT(Counted("stepwell_limit_slowed_seconds_total{limit=\"ingest_bytes\"}"), 10);
}

TEST_F(RatesTest, CallsThatCannotBeReadAreCalls) {
  StartMaster({"--calls-per-second", "1"});
  const std::string path = Url("/stepwell.v1.QueryService/ListTrials");
  const std::string brackets = std::string(20'000, '[');
  const struct {
    const char* name;
    Words words;
    const char* code;
  } rows[] = {
      {"nested without end", {"--json", brackets, path}, "400"},
      {"no message", {"--header", "Content-Type: application/proto", "--data", "x", path}, "400"},
      {"no gzip", {"--header", "Content-Encoding: gzip", "--json", "x", path}, "400"},
      {"another packing", {"--header", "Content-Encoding: br", "--json", "{}", path}, "501"},
      {"a time that is none", {"--header", "Connect-Timeout-Ms: x", "--json", "{}", path}, "400"},
      {"a time that is over", {"--header", "Connect-Timeout-Ms: 0", "--json", "{}", path}, "504"},
      {"a stream of no message",
       {"--header", "Content-Type: application/connect+json", "--data", "{}",
        Url("/stepwell.v1.QueryService/ReadSamples")},
       "200"},
  };
  int place = 0;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string from = absl::StrCat("127.0.1.", ++place);
    const absl::Time begin = absl::Now();
    int count = 0;
    Answer last;
    for (; count < 60; ++count) {
      last = Curl(from, row.words);
      if (absl::StrContains(last.body, "has used up its calls")) break;
      EXPECT_EQ(last.code, row.code) << last.body;
    }
    EXPECT_GE(count, 10) << "it was counted twice";
    EXPECT_LE(count, 12 + absl::ToDoubleSeconds(absl::Now() - begin));
    EXPECT_THAT(last.body, HasSubstr("resource_exhausted"));
    EXPECT_THAT(last.body, HasSubstr("google.rpc.RetryInfo"));
    if (last.code == "200") continue;  // a stream's end has it
    EXPECT_EQ(last.code, "429");
    EXPECT_THAT(last.head, HasSubstr("\r\nRetry-After: "));
  }
  // Right ones pay once, too.
  const absl::Time begin = absl::Now();
  int count = 0;
  while (count < 60 && List("127.0.1.99").code == "200") ++count;
  EXPECT_GE(count, 10);
  EXPECT_LE(count, 12 + absl::ToDoubleSeconds(absl::Now() - begin));
}

TEST_F(RatesTest, CallsOfTokensAreCallsWhereNobodyIsAskedForOne) {
  StartMaster({"--calls-per-second", "1"});
  const auto stub = v1::TokenService::NewStub(client_->channel());
  const auto ask = [&] {
    grpc::ClientContext context;
    v1::ListTokensResponse response;
    return stub->ListTokens(&context, v1::ListTokensRequest(), &response);
  };
  grpc::Status last = ask();
  EXPECT_EQ(last.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << last.error_message();
  for (int i = 0; i < 60 && last.error_code() == grpc::StatusCode::FAILED_PRECONDITION; ++i) {
    last = ask();
  }
  EXPECT_EQ(last.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << last.error_message();
}

// A proxy's address, say: only tokens tell its clients apart.
class SharedAddressTest : public TokenRatesTest {
 protected:
  std::string shared() const override { return "127.0.0.1"; }
  Words more() const override {
    return {"--calls-per-second", "2", "--ingest-bytes-per-second", absl::StrCat(kMessageBytes)};
  }
};

TEST_F(SharedAddressTest, ATokenThatIsUsedUpIsToldSoAndAnotherOneGoesOn) {
  const v1::CreateTokenResponse busy = MakeToken("read:*");
  const v1::CreateTokenResponse other = MakeToken("read:*");
  const auto channel = Channel();
  grpc::Status refused;
  for (int i = 0; i < 60 && refused.ok(); ++i) refused = Ask(channel, busy.text());
  ASSERT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr(absl::StrCat("the token ", busy.token().token_id(),
                                                              " (made) has used up")));
  ASSERT_TRUE(DetailOf<ErrorInfo>(refused).has_value());
  EXPECT_EQ(DetailOf<ErrorInfo>(refused)->reason(), "RATE_LIMIT");
  EXPECT_EQ(DetailOf<ErrorInfo>(refused)->metadata().at("limit"), "calls-per-second");
  ASSERT_TRUE(DetailOf<RetryInfo>(refused).has_value());
  const google::protobuf::Duration delay = DetailOf<RetryInfo>(refused)->retry_delay();
  EXPECT_GT(delay.seconds() + delay.nanos(), 0);
  EXPECT_TRUE(Ask(channel, other.text()).ok()) << "on the same connection";
  // The same over HTTP: what was used over gRPC is used up there.
  Answer answer;
  for (int i = 0; i < 60 && answer.code != "429"; ++i) answer = With("127.0.0.1", busy.text());
  EXPECT_EQ(answer.code, "429");
  EXPECT_THAT(answer.head, HasSubstr("\r\nRetry-After: "));
  EXPECT_THAT(answer.body, HasSubstr(busy.token().token_id()));
  EXPECT_EQ(With("127.0.0.1", other.text()).code, "200");
  EXPECT_TRUE(Eventually([&] { return Ask(channel, busy.text()).ok(); }, absl::Seconds(20)));
}

// Of calls that cannot be read, too.
TEST_F(SharedAddressTest, ATokenPaysForItsCallsThatCannotBeRead) {
  const std::string busy = MakeToken("read:*").text();
  const std::string other = MakeToken("read:*").text();
  const auto garbage = [&](const std::string& token) {
    return Curl("127.0.0.1", {"--cacert", scratch_ / "ca.pem", "--oauth2-bearer", token, "--json",
                              "[[[", Url("/stepwell.v1.QueryService/ListTrials")});
  };
  Answer answer;
  int count = 0;
  for (; count < 60 && answer.code != "429"; ++count) answer = garbage(busy);
  EXPECT_EQ(answer.code, "429");
  EXPECT_GE(count, 20);
  EXPECT_EQ(garbage(other).code, "400");
}

TEST_F(SharedAddressTest, AStreamWhoseTokenMayIngestNothingIsHeldByIt) {
  const auto stub = v1::IngestService::NewStub(Channel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  context.AddMetadata("authorization", "Bearer " + MakeToken("read:*").text());
  const auto stream = stub->StreamChunks(&context);
  const absl::Time begin = absl::Now();
  const v1::StreamChunksRequest message =
      ChunkMessage(Uuid::Random(), 1, std::string(kMessageBytes, 'x'));
  v1::StreamChunksResponse answer;
  // Ten at once, the others at one a second.
  for (int i = 0; i < 14; ++i) {
    ASSERT_TRUE(stream->Write(message));
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_EQ(answer.refused().reason(), "NOT_OPEN") << answer.ShortDebugString();
  }
  EXPECT_GE(absl::Now() - begin, absl::Seconds(2));
  context.TryCancel();
  (void)stream->Finish();
}

}  // namespace
}  // namespace stepwell::testing
