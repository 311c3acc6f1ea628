// What a sender of traces hears of a master that refuses: whether to come again.
#include "client/agent/trace_calls.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "stepwell/v1/trace.grpc.pb.h"

namespace stepwell::agent {
namespace {

class Refusing final : public v1::TraceService::Service {
 public:
  grpc::Status UploadTrace(grpc::ServerContext* /*call*/,
                           grpc::ServerReader<v1::UploadTraceRequest>* /*reader*/,
                           v1::UploadTraceResponse* /*response*/) override {
    return answer;
  }
  grpc::Status answer;
};

class TraceCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&master_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void TearDown() override { server_->Shutdown(); }
  absl::StatusCode Hear(const grpc::Status& answer) {
    master_.answer = answer;
    return MakeTraceCalls(nullptr,
                          {.shown = [](const auto& server, const auto&) { return "for " + server; },
                           .on_refused =
                               [this](const auto& server, const auto& text) {
                                 refused_.push_back(server + " " + text);
                               }})
        ->UploadTo(absl::StrCat("127.0.0.1:", port_), "", {}, [](v1::TracePart&) { return false; })
        .status()
        .code();
  }
  template <typename Detail>
  static grpc::Status With(const Detail& detail) {
    google::rpc::Status wire;
    wire.add_details()->PackFrom(detail);
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "no", wire.SerializeAsString()};
  }

  Refusing master_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::vector<std::string> refused_;
};

TEST_F(TraceCallsTest, WhatIsRefusedForNowComesAgainAndWhatACapForbidsDoesNot) {
  EXPECT_EQ(Hear(grpc::Status::OK), absl::StatusCode::kOk);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(3);
  EXPECT_EQ(Hear(With(retry)), absl::StatusCode::kUnavailable) << "beyond a rate";
  EXPECT_EQ(Hear({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many wrong tokens"}),
            absl::StatusCode::kUnavailable)
      << "the door has no details";
  google::rpc::ErrorInfo info;
  info.set_reason("TRACE_CAP");
  EXPECT_EQ(Hear(With(info)), absl::StatusCode::kResourceExhausted);
}

// Whoever fetched it hears of it; what is refused for another reason is good.
TEST_F(TraceCallsTest, ATokenThatIsNotKnownIsToldToItsOwner) {
  EXPECT_EQ(Hear({grpc::StatusCode::PERMISSION_DENIED, "no grant"}),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(refused_.empty());
  EXPECT_EQ(Hear({grpc::StatusCode::UNAUTHENTICATED, "unknown"}),
            absl::StatusCode::kUnauthenticated);
  const std::string server = absl::StrCat("127.0.0.1:", port_);
  EXPECT_THAT(refused_, ::testing::ElementsAre(server + " for " + server));
}

}  // namespace
}  // namespace stepwell::agent
