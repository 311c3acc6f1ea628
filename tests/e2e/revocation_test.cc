// What is open ends within five seconds of the answer that its token is revoked, whether the other side says and takes anything or
// not: streams, reads, downloads, uploads, of both ports. And how many of the streams one token may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <list>
#include <memory>
#include <random>

#include "absl/strings/str_format.h"
#include "stepwell/v1/trace.grpc.pb.h"
#include "tests/e2e/doors_stand.h"
#include "tests/e2e/error_details.h"
#include "tests/e2e/trace_messages.h"

namespace stepwell::testing {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr absl::Duration kEndsWithin = absl::Seconds(5);
// More than lies between a master and a client that takes nothing, in kernels too.
constexpr std::size_t kTraceBytes = 24 << 20;
constexpr std::size_t kPartBytes = 1 << 20;

// Calls that are open, each with all that it needs.
template <typename Stream, typename First>
struct OpenCall {
  // Where something does not end, the test does.
  OpenCall() { context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60)); }

  grpc::ClientContext context;
  First first;
  std::unique_ptr<Stream> stream;
};
using Upload = OpenCall<grpc::ClientWriter<v1::UploadTraceRequest>, v1::UploadTraceResponse>;
using Download = OpenCall<grpc::ClientReader<v1::GetTraceResponse>, v1::GetTraceResponse>;
using Read = OpenCall<grpc::ClientReader<v1::ReadSamplesResponse>, v1::ReadSamplesResponse>;
using Ingest = OpenCall<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>,
                        v1::StreamChunksResponse>;

class RevocationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    stand_ = new DoorsStand(AsksCertificates::kNo, {"--streams-max", "4"});
    run_ = stand_->Record("vision", "run");
  }
  static void TearDownTestSuite() {
    delete stand_;
    stand_ = nullptr;
  }
  // Little is taken of what nobody reads.
  static std::shared_ptr<grpc::Channel> ChannelWith(const std::string& token) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        stand_->server().addresses().grpc,
        grpc::CompositeChannelCredentials(stand_->Ssl(), grpc::AccessTokenCredentials(token)),
        arguments);
  }
  // Since the revocation was answered.
  static void ExpectSoon(const std::function<bool()>& is_over) {
    const absl::Time revoked = absl::Now();
    EXPECT_TRUE(Eventually(is_over, kEndsWithin));
    EXPECT_LT(absl::Now() - revoked, kEndsWithin);
  }
  static v1::UploadTraceRequest Header(const std::string& name, const std::string& bytes) {
    v1::TrialRef trial;
    trial.set_trial_id(run_);
    return TraceHeader(trial, name, bytes);
  }
  // A trace that nobody packs, under the number that is answered.
  static std::int32_t StoreTrace() {
    static std::int32_t trace_no = 0;
    if (trace_no != 0) return trace_no;
    std::string bytes(kTraceBytes, '\0');
    std::mt19937_64 chance(4711);
    for (char& byte : bytes) byte = static_cast<char>(chance());
    const auto stub = v1::TraceService::NewStub(stand_->ChannelWith(stand_->admin()));
    Upload upload;
    upload.stream = stub->UploadTrace(&upload.context, &upload.first);
    EXPECT_TRUE(upload.stream->Write(Header("large.json", bytes)));
    for (std::size_t at = 0; at < bytes.size(); at += kPartBytes) {
      EXPECT_TRUE(upload.stream->Write(TracePart(at, bytes.substr(at, kPartBytes))));
    }
    upload.stream->WritesDone();
    const grpc::Status status = upload.stream->Finish();
    EXPECT_TRUE(status.ok() && upload.first.complete()) << status.error_message();
    return trace_no = upload.first.trace_no();
  }
  static v1::GetTraceRequest TraceAsked() {
    v1::GetTraceRequest request;
    request.mutable_trial()->set_trial_id(run_);
    request.set_trace_no(StoreTrace());
    return request;
  }
  // Connections that somebody holds to the HTTP port.
  static int HttpConnections() {
    const std::string& address = stand_->server().addresses().http;
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    const std::string local = absl::StrFormat(":%04X", port);
    std::ifstream lines("/proc/net/tcp");
    int count = 0;
    std::string word, own, other, state;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      words >> word >> own >> other >> state;
      if (own.ends_with(local) && state == "01") ++count;
    }
    return count;
  }

  static inline DoorsStand* stand_ = nullptr;
  static inline std::int64_t run_ = 0;
};

TEST_F(RevocationTest, ATokenThatMayIngestNothingLeavesHalfOfTheStreamsToOthers) {
  const std::string greedy = stand_->MakeToken({"read:*"});
  const std::string cluster = stand_->MakeToken({"ingest:vision/run"});
  std::list<Ingest> streams;
  std::list<std::unique_ptr<v1::IngestService::Stub>> stubs;
  // Whether the master took it; its end where it did not.
  const auto begin = [&](const std::string& token) {
    Ingest& each = streams.emplace_back();
    stubs.push_back(v1::IngestService::NewStub(stand_->ChannelWith(token)));
    each.stream = stubs.back()->StreamChunks(&each.context);
    each.stream->WaitForInitialMetadata();
    return each.context.GetServerInitialMetadata().contains("stepwell-incarnation-bin");
  };
  EXPECT_TRUE(begin(greedy));
  EXPECT_TRUE(begin(greedy));
  EXPECT_FALSE(begin(greedy));
  const grpc::Status refused = streams.back().stream->Finish();
  ASSERT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("4 streams, which is its limit, of one token that "
                                                 "may ingest nothing itself 2"));
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(refused)->reason(), "STREAM_LIMIT");
  EXPECT_EQ(DetailOf<google::rpc::RetryInfo>(refused)->retry_delay().seconds(), 5);
  EXPECT_TRUE(begin(cluster)) << "another token";
  for (Ingest& each : streams) each.context.TryCancel();
  streams.clear();
  // All agents of a cluster may show one token.
  int begun = 0;
  EXPECT_TRUE(
      Eventually([&] { return (begun += begin(cluster) ? 1 : 0) == 4; }, absl::Seconds(20)));
  EXPECT_FALSE(begin(cluster));
  const grpc::Status full = streams.back().stream->Finish();
  EXPECT_EQ(full.error_message(), "this master serves 4 streams, which is its limit");
  for (Ingest& each : streams) each.context.TryCancel();
}

TEST_F(RevocationTest, ANewCallIsRefusedAtOnce) {
  const std::string token = stand_->MakeToken({"read:vision"});
  const char* list = "stepwell.v1.QueryService/ListTrials";
  EXPECT_TRUE(stand_->Call(list, v1::ListTrialsRequest(), token).status.ok());
  stand_->Revoke(token);
  EXPECT_EQ(stand_->Call(list, v1::ListTrialsRequest(), token).status.error_code(),
            StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(stand_->Curl("/page.json", token).code, "401");
}

TEST_F(RevocationTest, AFollowerEnds) {
  const std::string token = stand_->MakeToken({"read:vision"});
  const auto stub = v1::QueryService::NewStub(stand_->ChannelWith(token));
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_trial_id(run_);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto follow = stub->FollowSamples(&context, request);
  v1::FollowSamplesResponse followed;
  ASSERT_TRUE(follow->Read(&followed));
  stand_->Revoke(token);
  const absl::Time revoked = absl::Now();
  while (follow->Read(&followed)) {
  }
  EXPECT_LT(absl::Now() - revoked, kEndsWithin);
  EXPECT_EQ(follow->Finish().error_code(), StatusCode::UNAUTHENTICATED);
}

// Its answers wait for a client that takes none, as long as its machine lives.
TEST_F(RevocationTest, AStreamWhoseClientTakesNothingGivesItsPlaceBack) {
  const std::string doomed = stand_->MakeToken({"ingest:vision/run"});
  std::list<Ingest> streams;
  std::list<std::unique_ptr<v1::IngestService::Stub>> stubs;
  const auto open = [&](const std::string& token, const std::string& name) -> Ingest& {
    Ingest& each = streams.emplace_back();
    stubs.push_back(v1::IngestService::NewStub(ChannelWith(token)));
    each.stream = stubs.back()->StreamChunks(&each.context);
    auto message = OpenMessage({.writer = Uuid::Random(), .external_id = name});
    message.mutable_open()->set_project("vision");
    each.stream->Write(message);
    each.stream->Read(&each.first);
    return each;
  };
  const auto is_open = [&](const std::string& name) {
    const bool opened = open(stand_->admin(), name).first.has_opened();
    if (!opened) streams.pop_back();
    return opened;
  };
  // Those of the test before may go still.
  EXPECT_TRUE(Eventually([&] { return is_open("first"); }, absl::Seconds(20)));
  EXPECT_TRUE(is_open("second"));
  EXPECT_TRUE(is_open("third"));
  Ingest& silent = open(doomed, "run");
  ASSERT_TRUE(silent.first.has_opened());
  auto refused = OpenMessage({.writer = Uuid::Random(), .external_id = std::string(250, 'x')});
  for (int i = 0; i < 1000; ++i) silent.stream->Write(refused);
  EXPECT_FALSE(is_open("fourth"));
  stand_->Revoke(doomed);
  ExpectSoon([&] { return is_open("fourth"); });
  for (Ingest& each : streams) each.context.TryCancel();
}

TEST_F(RevocationTest, ADownloadThatNobodyTakesGivesItsPlaceBack) {
  const std::string doomed = stand_->MakeToken({"read:vision"});
  const std::string lives = stand_->MakeToken({"read:vision"});
  const v1::GetTraceRequest request = TraceAsked();
  std::list<Download> calls;
  std::list<std::unique_ptr<v1::TraceService::Stub>> stubs;
  const auto begin = [&](const std::string& token) {
    Download& each = calls.emplace_back();
    stubs.push_back(v1::TraceService::NewStub(ChannelWith(token)));
    each.stream = stubs.back()->GetTrace(&each.context, request);
    return each.stream->Read(&each.first);
  };
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(begin(doomed));
    ASSERT_TRUE(begin(lives));
  }
  EXPECT_FALSE(begin(stand_->admin())) << "there are eight places";
  stand_->Revoke(doomed);
  ExpectSoon([&] { return begin(stand_->admin()); });
  for (Download& each : calls) each.context.TryCancel();
}

TEST_F(RevocationTest, AReadThatNobodyTakesGivesItsPlaceBack) {
  const std::string doomed = stand_->MakeToken({"read:vision"});
  const std::string lives = stand_->MakeToken({"read:vision"});
  const Uuid writer = Uuid::Random();
  v1::WriteChunksRequest write;
  v1::StreamChunksRequest open = OpenMessage({.writer = writer, .external_id = "long"});
  open.mutable_open()->set_project("vision");
  *write.add_messages() = open;
  *write.add_messages() = DefinitionMessage(writer, {{}});
  std::mt19937_64 chance(4711);
  std::uniform_real_distribution<double> value;
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
    std::vector<double> values(20'000);
    for (double& each : values) each = value(chance);
    *write.add_messages() =
        ChunkMessage(writer, sequence, OneColumn(1, NowUs() - 60'000'000, 1, values));
  }
  const Called wrote =
      stand_->Call("stepwell.v1.IngestService/WriteChunks", write, stand_->admin());
  ASSERT_TRUE(wrote.status.ok()) << wrote.status.error_message();
  v1::ReadSamplesRequest request;
  request.mutable_trial()->set_project("vision");
  request.mutable_trial()->set_external_id("long");
  std::list<Read> calls;
  std::list<std::unique_ptr<v1::QueryService::Stub>> stubs;
  const auto begin = [&](const std::string& token) {
    Read& each = calls.emplace_back();
    stubs.push_back(v1::QueryService::NewStub(ChannelWith(token)));
    each.stream = stubs.back()->ReadSamples(&each.context, request);
    return each.stream->Read(&each.first);
  };
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(begin(doomed));
    ASSERT_TRUE(begin(lives));
  }
  EXPECT_FALSE(begin(stand_->admin())) << "there are sixteen places";
  stand_->Revoke(doomed);
  ExpectSoon([&] { return begin(stand_->admin()); });
  for (Read& each : calls) each.context.TryCancel();
}

TEST_F(RevocationTest, AnUploadThatSaysNothingGivesItsPlaceBack) {
  const std::string doomed = stand_->MakeToken({"write:vision"});
  const std::string lives = stand_->MakeToken({"write:vision"});
  std::list<Upload> calls;
  std::list<std::unique_ptr<v1::TraceService::Stub>> stubs;
  const auto begin = [&](const std::string& token, bool has_header) -> Upload& {
    Upload& each = calls.emplace_back();
    stubs.push_back(v1::TraceService::NewStub(ChannelWith(token)));
    each.stream = stubs.back()->UploadTrace(&each.context, &each.first);
    const std::string bytes = absl::StrCat("trace ", calls.size());
    if (has_header) each.stream->Write(Header(bytes + ".json", bytes));
    return each;
  };
  // One that says all that it has; what became of it.
  const auto whole = [&] {
    Upload& each = begin(stand_->admin(), true);
    each.stream->WritesDone();
    return each.stream->Finish().error_code();
  };
  for (int i = 0; i < 8; ++i) {
    begin(doomed, i % 2 == 0);
    begin(lives, true);
  }
  EXPECT_TRUE(
      Eventually([&] { return whole() == StatusCode::RESOURCE_EXHAUSTED; }, absl::Seconds(20)))
      << "there are sixteen places";
  stand_->Revoke(doomed);
  ExpectSoon([&] { return whole() == StatusCode::OK; });
  for (Upload& each : calls) each.context.TryCancel();
}

TEST_F(RevocationTest, AConnectionOfHttpThatTakesNothingIsClosed) {
  const std::string doomed = stand_->MakeToken({"read:vision"});
  const std::string asked = TraceAsked().SerializeAsString();
  std::string envelope(5, '\0');
  envelope[4] = static_cast<char>(asked.size());
  stand_->Write("asked", envelope + asked);
  ASSERT_TRUE(Eventually([&] { return HttpConnections() == 0; }, absl::Seconds(70)));
  const std::string file = stand_->Scratch("taken");
  ChildProcess curl;
  curl.Start(
      {"/usr/bin/curl", "--silent", "--no-buffer", "--cacert", stand_->ca_file(), "--limit-rate",
       "64k", "--header", "Content-Type: application/connect+proto", "--oauth2-bearer", doomed,
       "--data-binary", "@" + stand_->Scratch("asked"), "--output", file,
       absl::StrCat("https://", stand_->server().addresses().http,
                    "/stepwell.v1.TraceService/GetTrace")},
      {}, stand_->Scratch("curl.log"));
  ASSERT_TRUE(Eventually([&] { return !DoorsStand::ReadFile(file).empty(); }, absl::Seconds(20)));
  curl.Signal(SIGSTOP);
  EXPECT_EQ(HttpConnections(), 1);
  stand_->Revoke(doomed);
  ExpectSoon([&] { return HttpConnections() == 0; });
  curl.Kill();
}

TEST_F(RevocationTest, ABodyOfHttpThatComesByteByByteIsReadNoFurther) {
  const std::string doomed = stand_->MakeToken({"read:vision"});
  stand_->Write("body", std::string(2 << 20, ' '));
  ASSERT_TRUE(Eventually([&] { return HttpConnections() == 0; }, absl::Seconds(70)));
  ChildProcess curl;
  const std::string log = stand_->Scratch("slow.log");
  curl.Start({"/usr/bin/curl", "--verbose", "--cacert", stand_->ca_file(), "--limit-rate", "1k",
              "--header", "Expect: 100-continue", "--header", "Content-Type: application/json",
              "--oauth2-bearer", doomed, "--data-binary", "@" + stand_->Scratch("body"),
              absl::StrCat("https://", stand_->server().addresses().http,
                           "/stepwell.v1.QueryService/ListTrials")},
             {}, log);
  const auto goes_on = [&] {
    return DoorsStand::ReadFile(log).find("100 Continue") != std::string::npos;
  };
  ASSERT_TRUE(Eventually(goes_on, absl::Seconds(20))) << DoorsStand::ReadFile(log);
  EXPECT_EQ(HttpConnections(), 1);
  stand_->Revoke(doomed);
  ExpectSoon([&] { return HttpConnections() == 0; });
  curl.Kill();
}

}  // namespace
}  // namespace stepwell::testing
