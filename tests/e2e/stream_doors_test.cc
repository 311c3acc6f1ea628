// Streams past the doors of a master that asks for tokens: how many of one token there may be, and whose token
// decides over a writer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <memory>

#include "tests/e2e/doors_fixture.h"
#include "tests/e2e/error_details.h"

namespace stepwell::testing {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class StreamDoorsTest : public DoorsTest {};

TEST_F(StreamDoorsTest, OneTokensStreamsLeaveHalfOfThePlacesToOthers) {
  const std::string greedy = stand_->MakeToken({"read:vision"});
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_trial_id(run_);
  struct Follow {
    grpc::ClientContext context;
    std::unique_ptr<v1::QueryService::Stub> stub;
    std::unique_ptr<grpc::ClientReader<v1::FollowSamplesResponse>> reader;
    v1::FollowSamplesResponse message;
    bool begins = false;
  };
  std::list<Follow> follows;
  const auto begin = [&](const std::string& token) -> Follow& {
    Follow& follow = follows.emplace_back();
    follow.stub = v1::QueryService::NewStub(stand_->ChannelWith(token));
    follow.reader = follow.stub->FollowSamples(&follow.context, request);
    follow.begins = follow.reader->Read(&follow.message);
    return follow;
  };
  int begun = 0;
  while (begun < 64 && begin(greedy).begins) ++begun;
  EXPECT_EQ(begun, 32);
  const grpc::Status refused = follows.back().reader->Finish();
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("limit 64, of one token 32"));
  const auto info = DetailOf<google::rpc::ErrorInfo>(refused);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "FOLLOWS_UNDER_WAY");
  const auto retry = DetailOf<google::rpc::RetryInfo>(refused);
  ASSERT_TRUE(retry.has_value());
  EXPECT_GE(retry->retry_delay().seconds(), 1);
  EXPECT_TRUE(begin(reader_).begins) << "another token";
  for (Follow& follow : follows) follow.context.TryCancel();
}

class IngestDoorsTest : public DoorsTest {
 protected:
  struct Stream {
    Stream(const std::shared_ptr<grpc::Channel>& channel)
        : stub(v1::IngestService::NewStub(channel)), both(stub->StreamChunks(&context)) {}
    v1::StreamChunksResponse Ask(const v1::StreamChunksRequest& message) {
      v1::StreamChunksResponse answer;
      both->Write(message);
      // Acks tell of credit in between.
      do {
        if (!both->Read(&answer)) ADD_FAILURE() << both->Finish().error_message();
      } while (answer.has_ack());
      return answer;
    }
    grpc::ClientContext context;
    std::unique_ptr<v1::IngestService::Stub> stub;
    std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
        both;
  };
  static v1::StreamChunksRequest OpenWith(const std::string& token, const std::string& name,
                                          const std::string& project = "vision") {
    auto open = OpenMessage({.writer = Uuid::Random(), .external_id = name});
    open.mutable_open()->set_project(project);
    open.mutable_open()->set_token(token);
    return open;
  }
};

TEST_F(IngestDoorsTest, AWritersOwnTokenDecidesNotItsAgents) {
  Stream stream(stand_->ChannelWith(stand_->admin()));
  EXPECT_TRUE(stream.Ask(OpenWith("", "anything")).has_opened());
  EXPECT_TRUE(stream.Ask(OpenWith(ingester_, "run")).has_opened());
  EXPECT_EQ(stream.Ask(OpenWith(ingester_, "another")).refused().reason(), "GRANT_MISSING");
  const auto unknown = stream.Ask(OpenWith(revoked_, "run")).refused();
  EXPECT_EQ(unknown.code(), static_cast<int>(StatusCode::UNAUTHENTICATED));
  EXPECT_EQ(unknown.reason(), "TOKEN_REFUSED");
  EXPECT_TRUE(unknown.terminal());

  Stream small(stand_->ChannelWith(other_));
  EXPECT_EQ(small.Ask(OpenWith("", "run")).refused().reason(), "GRANT_MISSING");
  EXPECT_TRUE(small.Ask(OpenWith(ingester_, "run")).has_opened());
  EXPECT_TRUE(small.Ask(OpenWith("", "of speech", "speech")).has_opened());
}

TEST_F(IngestDoorsTest, ATrialThatIsNotThereYetIsMadeByItsTokenAlone) {
  const std::string future = stand_->MakeToken({"ingest:new-project/new-run"});
  Stream stream(stand_->ChannelWith(future));
  EXPECT_TRUE(stream.Ask(OpenWith("", "new-run", "other-project")).has_refused());
  EXPECT_TRUE(stream.Ask(OpenWith("", "new-run", "new-project")).has_opened());
}

TEST_F(IngestDoorsTest, AStreamEndsWithItsTokenAndAWriterWithItsOwn) {
  const std::string of_agent = stand_->MakeToken({"write:vision"});
  const std::string of_writer = stand_->MakeToken({"ingest:vision/run"});
  Stream stream(stand_->ChannelWith(of_agent));
  EXPECT_TRUE(stream.Ask(OpenWith("", "run")).has_opened());
  const auto open = OpenWith(of_writer, "run");
  EXPECT_TRUE(stream.Ask(open).has_opened());
  stand_->Revoke(of_writer);
  absl::Time revoked = absl::Now();
  v1::StreamChunksResponse answer;
  do {
    ASSERT_TRUE(stream.both->Read(&answer));
  } while (answer.has_ack());
  EXPECT_EQ(answer.refused().writer(), open.open().writer());
  EXPECT_EQ(answer.refused().code(), static_cast<int>(StatusCode::UNAUTHENTICATED));
  EXPECT_TRUE(answer.refused().terminal());
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(5));
  stand_->Revoke(of_agent);
  revoked = absl::Now();
  while (stream.both->Read(&answer)) {
  }
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(5));
  const grpc::Status end = stream.both->Finish();
  EXPECT_EQ(end.error_code(), StatusCode::UNAUTHENTICATED) << end.error_message();
}

}  // namespace
}  // namespace stepwell::testing
