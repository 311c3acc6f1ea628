// DoorsTest: a master that asks for tokens, with a trial of each of two projects, and a token of each kind. One for
// all tests of a suite.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "stepwell/v1/ingest.pb.h"
#include "tests/e2e/doors_stand.h"
#include "tests/e2e/request_about.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {

class DoorsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    stand_ = new DoorsStand();
    run_ = stand_->Record("vision", "run");
    stand_->Record("speech", "run");
    reader_ = stand_->MakeToken({"read:vision"});
    writer_ = stand_->MakeToken({"write:vision"});
    other_ = stand_->MakeToken({"write:speech"});
    all_ = stand_->MakeToken({"read:*"});
    ingester_ = stand_->MakeToken({"ingest:vision/run"});
    revoked_ = stand_->MakeToken({"admin"});
    stand_->Revoke(revoked_);
  }
  static void TearDownTestSuite() {
    delete stand_;
    stand_ = nullptr;
  }

  // About the trial "run" of vision, whatever the method; the rest is empty.
  static std::unique_ptr<google::protobuf::Message> RequestOf(
      const google::protobuf::MethodDescriptor& method) {
    return RequestAbout(method, {run_, "vision", "run"});
  }
  static grpc::StatusCode CodeOf(const google::protobuf::MethodDescriptor& method,
                                 const std::string& token) {
    return stand_->Call(PathOf(method), *RequestOf(method), token).status.error_code();
  }
  // What the master said of the writer that wanted to open.
  static v1::StreamChunksResponse OpeningOf(const google::protobuf::MethodDescriptor& method,
                                            const std::string& token) {
    const Called called = stand_->Call(PathOf(method), *RequestOf(method), token);
    v1::StreamChunksResponse answer;
    v1::WriteChunksResponse answers;
    if (method.client_streaming()) {
      EXPECT_TRUE(answer.ParseFromString(called.bytes));
      return answer;
    }
    EXPECT_TRUE(answers.ParseFromString(called.bytes));
    return answers.messages_size() > 0 ? answers.messages(0) : answer;
  }

  static inline DoorsStand* stand_ = nullptr;
  static inline std::int64_t run_ = 0;
  static inline std::string reader_, writer_, other_, all_, ingester_, revoked_;
};

}  // namespace stepwell::testing
