// What one token, and one address, may read: whoever was told more than that is refused until it is paid for, others are
// undisturbed, a stream is slowed and whole; over gRPC and HTTP alike.
#include <gmock/gmock.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/steady_time.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/error_details.h"
#include "tests/e2e/rates_stand.h"

namespace stepwell::testing {
namespace {

using google::rpc::ErrorInfo;
using google::rpc::RetryInfo;
using ::testing::HasSubstr;

// The least that may be set; ten times as much comes at once.
constexpr std::int64_t kBytesPerSecond = 65536;
constexpr int kSeries = 1000;

void Show(grpc::ClientContext& context, const std::string& token) {
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

// A writer's messages, in one call.
void WriteTo(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
             const std::vector<v1::StreamChunksRequest>& messages) {
  const auto stub = v1::IngestService::NewStub(channel);
  grpc::ClientContext context;
  Show(context, token);
  v1::WriteChunksRequest request;
  for (const auto& message : messages) *request.add_messages() = message;
  v1::WriteChunksResponse response;
  const grpc::Status written = stub->WriteChunks(&context, request, &response);
  ASSERT_TRUE(written.ok()) << written.error_message();
  for (const auto& answer : response.messages()) {
    EXPECT_FALSE(answer.has_refused()) << answer.ShortDebugString();
  }
}

class ReadRatesTest : public TokenRatesTest {
 protected:
  std::string shared() const override { return "127.0.0.1"; }
  Words more() const override { return {"--read-bytes-per-second", absl::StrCat(kBytesPerSecond)}; }
  // Whose list of series is some 250 kB.
  void FillTrial() {
    const Uuid writer = Uuid::Random();
    std::vector<DefinitionFields> definitions;
    for (std::uint32_t ref = 1; ref <= kSeries; ++ref) {
      definitions.push_back({.ref = ref, .name = absl::StrCat(std::string(200, 'm'), "_", ref)});
    }
    WriteTo(Channel(), token_,
            {OpenMessage({.writer = writer, .external_id = "wide"}),
             DefinitionMessage(writer, definitions)});
  }
  grpc::Status ListSeries(const std::shared_ptr<grpc::Channel>& channel, const std::string& token) {
    const auto stub = v1::QueryService::NewStub(channel);
    grpc::ClientContext context;
    Show(context, token);
    v1::ListSeriesRequest request;
    request.mutable_trial()->set_external_id("wide");
    v1::ListSeriesResponse response;
    const grpc::Status status = stub->ListSeries(&context, request, &response);
    if (status.ok()) {
      EXPECT_EQ(response.series_size(), kSeries);
      answer_bytes_ = response.ByteSizeLong();
    }
    return status;
  }
  Answer ListOverHttp(const std::string& token) {
    return Curl("127.0.0.1", {"--cacert", scratch_ / "ca.pem", "--oauth2-bearer", token, "--json",
                              R"({"trial":{"externalId":"wide"}})",
                              Url("/stepwell.v1.QueryService/ListSeries")});
  }

  std::size_t answer_bytes_ = 0;
};

TEST_F(ReadRatesTest, WhoeverWasToldMoreThanHeMayReadComesAgainWhenHeIsTold) {
  FillTrial();
  const auto channel = Channel();
  const v1::CreateTokenResponse busy = MakeToken("write:*");
  const std::string other = MakeToken("read:*").text();
  int told = 0;
  grpc::Status refused;
  for (; told < 60 && refused.ok(); ++told) refused = ListSeries(channel, busy.text());
  ASSERT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr(absl::StrCat("the token ", busy.token().token_id(),
                                     " (made) has used up its bytes of answers")));
  const auto info = DetailOf<ErrorInfo>(refused);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "RATE_LIMIT");
  EXPECT_EQ(info->metadata().at("limit"), "read-bytes-per-second");
  EXPECT_EQ(info->metadata().at("allowed"), absl::StrCat(kBytesPerSecond));
  // What the last answer went beyond.
  const auto retry = DetailOf<RetryInfo>(refused);
  ASSERT_TRUE(retry.has_value());
  const auto delay = absl::Nanoseconds(
      google::protobuf::util::TimeUtil::DurationToNanoseconds(retry->retry_delay()));
  EXPECT_GT(delay, absl::ZeroDuration());
  EXPECT_LE(absl::ToDoubleSeconds(delay),
            static_cast<double>(answer_bytes_) / kBytesPerSecond + 0.1);
  // The same token over the other door, which is told in bytes of the same messages.
  const Answer over_http = ListOverHttp(busy.text());
  EXPECT_EQ(over_http.code, "429");
  EXPECT_THAT(over_http.head, HasSubstr("\r\nRetry-After: "));
  const auto json = nlohmann::json::parse(over_http.body);
  EXPECT_EQ(json["details"][1]["type"], "google.rpc.RetryInfo");

  EXPECT_TRUE(ListSeries(channel, other).ok()) << "on the same connection";
  WriteTo(channel, busy.text(), {OpenMessage({.writer = Uuid::Random(), .external_id = "more"})});
  absl::SleepFor(delay);
  EXPECT_TRUE(ListSeries(channel, busy.text()).ok()) << "as it was told";

  // An answer that goes on to a client of HTTP is paid for once.
  const std::string browser = MakeToken("read:*").text();
  const SteadyTime begin = SteadyTime::Now();
  int of_browser = 0;
  while (of_browser < 60 && ListOverHttp(browser).code == "200") ++of_browser;
  const double seconds = absl::ToDoubleSeconds(SteadyTime::Now() - begin);
  const double bytes = static_cast<double>(of_browser) * static_cast<double>(answer_bytes_);
  EXPECT_GT(bytes, 10 * kBytesPerSecond);
  EXPECT_LE(bytes, (10 + seconds) * kBytesPerSecond + static_cast<double>(answer_bytes_));
}

TEST_F(ReadRatesTest, WhoFollowsHearsSomethingWhileTheTokenOwes) {
  FillTrial();
  const std::string token = MakeToken("read:*").text();
  const auto follower = v1::QueryService::NewStub(Channel());
  grpc::ClientContext context;
  Show(context, token);
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_external_id("wide");
  const auto reader = follower->FollowSamples(&context, request);
  v1::FollowSamplesResponse heard;
  ASSERT_TRUE(reader->Read(&heard));

  // More than its client's patience of six seconds is owed: calls beside each other are let in before the first is paid for.
  const auto channel = Channel();
  absl::Duration owed;
  for (int round = 0; round < 20 && owed < absl::Seconds(9); ++round) {
    std::vector<std::thread> calls;
    std::mutex mutex;
    for (int i = 0; i < 8; ++i) {
      calls.emplace_back([&] {
        const auto stub = v1::QueryService::NewStub(channel);
        grpc::ClientContext of_call;
        Show(of_call, token);
        v1::ListSeriesRequest list;
        list.mutable_trial()->set_external_id("wide");
        v1::ListSeriesResponse response;
        const auto retry = DetailOf<RetryInfo>(stub->ListSeries(&of_call, list, &response));
        if (!retry) return;
        const std::lock_guard lock(mutex);
        owed = absl::Nanoseconds(
            google::protobuf::util::TimeUtil::DurationToNanoseconds(retry->retry_delay()));
      });
    }
    for (std::thread& call : calls) call.join();
  }
  ASSERT_GE(owed, absl::Seconds(9));
  const SteadyTime end = SteadyTime::Now() + owed;
  absl::Duration longest;
  for (SteadyTime last = SteadyTime::Now(); !end.HasPassed();) {
    ASSERT_TRUE(reader->Read(&heard));
    const SteadyTime now = SteadyTime::Now();
    longest = std::max(longest, now - last);
    last = now;
  }
  std::printf("at most %.1f s of silence while %.1f s are owed\n", absl::ToDoubleSeconds(longest),
              absl::ToDoubleSeconds(owed));
  EXPECT_GT(longest, absl::Seconds(2)) << "nothing held it: this test says nothing";
  EXPECT_LT(longest, absl::Milliseconds(5500));
  context.TryCancel();
  while (reader->Read(&heard)) {
  }
}

TEST_F(RatesTest, AStreamThatReadsMoreIsSlowedAndWholeAndLeavesSomethingToCalls) {
  constexpr int kSamples = 60'000;
  StartMaster({"--read-bytes-per-second", absl::StrCat(kBytesPerSecond)});
  const Uuid writer = Uuid::Random();
  std::vector<double> values(kSamples);
  for (int i = 0; i < kSamples; ++i) values[static_cast<std::size_t>(i)] = i * 1.1;
  WriteTo(client_->channel(), "",
          {OpenMessage({.writer = writer, .external_id = "long"}), DefinitionMessage(writer, {{}}),
           ChunkMessage(writer, 1, OneColumn(1, NowUs() - kSamples * 1000, 1000, values))});

  const auto stub = v1::QueryService::NewStub(client_->channel());
  grpc::ClientContext context;
  v1::ReadSamplesRequest request;
  request.mutable_trial()->set_external_id("long");
  const SteadyTime begin = SteadyTime::Now();
  const auto reader = stub->ReadSamples(&context, request);
  v1::ReadSamplesResponse response;
  std::size_t bytes = 0;
  int read = 0;
  while (reader->Read(&response)) {
    bytes += response.ByteSizeLong();
    read += response.values_size();
    EXPECT_TRUE(ListTrials().ok()) << "from the same address";
  }
  const grpc::Status ended = reader->Finish();
  EXPECT_TRUE(ended.ok()) << ended.error_message();
  EXPECT_EQ(read, kSamples);
  // Of the ten that come at once nine: one is left to calls.
  const double seconds = absl::ToDoubleSeconds(SteadyTime::Now() - begin);
  const double owed = static_cast<double>(bytes) / kBytesPerSecond - 9;
  std::printf("%zu bytes in %.1f s\n", bytes, seconds);
  EXPECT_GT(owed, 4);
  EXPECT_GE(seconds, owed - 0.1);
  EXPECT_TRUE(ListTrials().ok());
  EXPECT_GT(Counted("stepwell_limit_slowed_seconds_total{limit=\"read_bytes\"}"), 1);
  EXPECT_EQ(Counted("stepwell_limit_refusals_total{limit=\"read_bytes\"}"), 0);
}

}  // namespace
}  // namespace stepwell::testing
