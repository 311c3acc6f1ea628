// Uploads of traces are calls as others are, whatever becomes of them; and who finds no place is told when to come again.
#include <gmock/gmock.h>

#include <list>

#include "stepwell/v1/trace.grpc.pb.h"
#include "tests/e2e/error_details.h"
#include "tests/e2e/rates_stand.h"
#include "tests/e2e/trace_messages.h"

namespace stepwell::testing {
namespace {

using google::rpc::ErrorInfo;
using google::rpc::RetryInfo;

constexpr int kAtOnce = 30;

std::string ReasonOf(const grpc::Status& status) {
  const auto info = DetailOf<ErrorInfo>(status);
  return info ? info->reason() : "";
}

v1::UploadTraceRequest Header(const std::string& trial, const std::string& bytes) {
  v1::TrialRef ref;
  ref.set_external_id(trial);
  return TraceHeader(ref, "a.json", bytes);
}

// Only tokens pay.
class UploadRatesTest : public TokenRatesTest {
 protected:
  std::string shared() const override { return "127.0.0.1"; }
  Words more() const override { return {"--calls-per-second", "1"}; }

  void MakeTrial(const std::string& name) {
    const auto stub = v1::IngestService::NewStub(Channel());
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token_);
    v1::WriteChunksRequest request;
    v1::WriteChunksResponse response;
    *request.add_messages() = OpenMessage({.writer = Uuid::Random(), .external_id = name});
    const grpc::Status written = stub->WriteChunks(&context, request, &response);
    ASSERT_TRUE(written.ok()) << written.error_message();
    ASSERT_TRUE(response.messages(0).has_opened()) << response.ShortDebugString();
  }
  TraceUploadCall& Begin(const std::string& token) {
    TraceUploadCall& upload = uploads_.emplace_back();
    upload.context.AddMetadata("authorization", "Bearer " + token);
    upload.context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    upload.writer = stub_->UploadTrace(&upload.context, &upload.response);
    return upload;
  }
  // Many at once, each with those messages: it pays for ten and no more, and all others are told so.
  void ExpectToPay(const std::string& token, const std::vector<v1::UploadTraceRequest>& messages,
                   const std::string& reason) {
    const absl::Time begin = absl::Now();
    std::vector<TraceUploadCall*> calls;
    for (int i = 0; i < kAtOnce; ++i) calls.push_back(&Begin(token));
    // A write fails where it was answered before.
    for (TraceUploadCall* each : calls) {
      for (const auto& message : messages) (void)each->writer->Write(message);
    }
    int paid = 0;
    for (TraceUploadCall* each : calls) {
      const grpc::Status ended = each->End();
      const std::string told = ended.ok() ? "" : ReasonOf(ended);
      paid += told == reason ? 1 : 0;
      if (told == reason) continue;
      EXPECT_EQ(told, "RATE_LIMIT") << ended.error_message();
      EXPECT_TRUE(DetailOf<RetryInfo>(ended).has_value());
    }
    EXPECT_GE(paid, 10) << "it was counted twice";
    EXPECT_LE(paid, 12 + absl::ToDoubleSeconds(absl::Now() - begin));
  }
  // Both halves of the places, by two tokens.
  void TakeAllPlaces() {
    const std::string holders[] = {MakeToken("write:*").text(), MakeToken("write:*").text()};
    for (int i = 0; i < 16; ++i) Begin(holders[i % 2]);
    EXPECT_TRUE(Eventually([&] { return ReasonOf(Begin(token_).End()) == "TRACES_UNDER_WAY"; },
                           absl::Seconds(20)));
  }

  std::unique_ptr<v1::TraceService::Stub> stub_;
  std::list<TraceUploadCall> uploads_;

  void SetUp() override {
    TokenRatesTest::SetUp();
    stub_ = v1::TraceService::NewStub(Channel());
  }
  void TearDown() override {
    for (TraceUploadCall& each : uploads_) each.context.TryCancel();
  }
};

TEST_F(UploadRatesTest, WhateverBecomesOfThemUploadsAreCallsOnce) {
  const std::string bytes = R"({"traceEvents":[]})";
  MakeTrial("run");
  // Once it is there, many may bring it at one time.
  TraceUploadCall& first = Begin(token_);
  ASSERT_TRUE(first.writer->Write(Header("run", bytes)) &&
              first.writer->Write(TracePart(0, bytes)));
  const grpc::Status brought = first.End();
  ASSERT_TRUE(brought.ok() && first.response.complete()) << brought.error_message();
  const struct {
    const char* name;
    const char* grant;
    std::vector<v1::UploadTraceRequest> messages;
    const char* reason;
  } rows[] = {
      {"of one that may ingest nothing", "read:*", {Header("run", bytes)}, "GRANT_MISSING"},
      {"of another trial", "ingest:default/mine", {Header("run", bytes)}, "GRANT_MISSING"},
      {"that say nothing", "write:*", {}, "HEADER"},
      {"without a header", "write:*", {TracePart(0, bytes)}, "HEADER"},
      {"of no trial", "write:*", {Header("none", bytes)}, "NOT_FOUND"},
      {"that are there", "write:*", {Header("run", bytes), TracePart(0, bytes)}, ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ExpectToPay(MakeToken(row.grant).text(), row.messages, row.reason);
  }
}

// Which does not end by itself: there is no time to come again.
TEST_F(UploadRatesTest, OneOverACapIsExhaustedAndListedWithItsTrial) {
  const std::string bytes = R"({"traceEvents":[]})";
  MakeTrial("run");
  const auto call = [this](const auto& ask) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token_);
    const grpc::Status asked = ask(context);
    EXPECT_TRUE(asked.ok()) << asked.error_message();
  };
  v1::TrialRef run;
  run.set_external_id("run");
  call([&](grpc::ClientContext& context) {
    v1::SetCapsRequest caps;
    *caps.mutable_place()->mutable_trial() = run;
    caps.mutable_caps()->set_trace_bytes(static_cast<std::int64_t>(bytes.size()) - 1);
    v1::SetCapsResponse set;
    return v1::AdminService::NewStub(Channel())->SetCaps(&context, caps, &set);
  });
  TraceUploadCall& upload = Begin(token_);
  ASSERT_TRUE(upload.writer->Write(Header("run", bytes)));
  const grpc::Status refused = upload.End();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "trace_bytes") << refused.error_message();
  EXPECT_FALSE(DetailOf<RetryInfo>(refused).has_value());
  v1::ListTracesResponse list;
  call([&](grpc::ClientContext& context) {
    v1::ListTracesRequest request;
    *request.mutable_trial() = run;
    return stub_->ListTraces(&context, request, &list);
  });
  EXPECT_EQ(list.refused_count(), 1);
  ASSERT_EQ(list.traces_size(), 1);
  EXPECT_EQ(list.traces(0).state(), v1::TRACE_STATE_REFUSED);
  EXPECT_EQ(list.traces(0).reason(), "trace_bytes");
  EXPECT_EQ(list.traces(0).header().name(), "a.json");
  EXPECT_EQ(list.traces(0).received_bytes(), 0);
}

TEST_F(UploadRatesTest, ThoseThatFindNoPlaceAreCallsAndAreToldWhenToComeAgain) {
  TakeAllPlaces();
  const std::string late = MakeToken("write:*").text();
  const grpc::Status refused = Begin(late).End();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "TRACES_UNDER_WAY");
  const auto retry = DetailOf<RetryInfo>(refused);
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->retry_delay().seconds(), 1);
  ExpectToPay(MakeToken("write:*").text(), {}, "TRACES_UNDER_WAY");
}

}  // namespace
}  // namespace stepwell::testing
