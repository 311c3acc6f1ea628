// gRPC's own counters, of a server with a client.
#include "server/grpc_channelz.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"

namespace stepwell {
namespace {

class GrpcChannelzTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&none_);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    ASSERT_TRUE(calls_.Begin());
  }

  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                     grpc::InsecureChannelCredentials(), own);
  }
  // To a method that is not there.
  static void Call(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, "/none/Such", grpc::ByteBuffer(), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool is_ok = false;
    queue.Next(&tag, &is_ok);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  }

  int port_ = 0;
  grpc::CallbackGenericService none_;  // knows no method
  std::unique_ptr<grpc::Server> server_;
  ChannelzCalls calls_;
};

TEST_F(GrpcChannelzTest, EachConnectionHasItsOwnUntilItIsGone) {
  EXPECT_THAT(calls_.Since(0), ::testing::IsEmpty());
  auto first = Connect();
  for (int i = 0; i < 3; ++i) Call(first);
  const auto found = calls_.Since(0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].end.starts_with("127.0.0.1:")) << found[0].end;
  EXPECT_EQ(calls_.Begun(found[0].id), 3);
  const auto second = Connect();
  Call(second);
  const auto later = calls_.Since(found[0].id + 1);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_NE(later[0].end, found[0].end);
  EXPECT_EQ(calls_.Begun(later[0].id), 1);
  EXPECT_EQ(calls_.Since(0).size(), 2u);
  first.reset();
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  while (calls_.Begun(found[0].id) && !deadline.HasPassed()) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(calls_.Begun(found[0].id), std::nullopt);
}

// More than channelz puts into one answer.
TEST_F(GrpcChannelzTest, ManyComeInPages) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 120; ++i) {
    channels.push_back(Connect());
    Call(channels.back());
  }
  std::set<std::string> ends;
  for (const CallCounter& each : calls_.Since(0)) ends.insert(each.end);
  EXPECT_EQ(ends.size(), channels.size());
}

TEST(GrpcChannelzStartTest, BeforeThereIsAServerThereIsNothing) {
  ChannelzCalls calls;
  EXPECT_THAT(calls.Since(0), ::testing::IsEmpty());
  EXPECT_EQ(calls.Begun(1'000'000'000), std::nullopt);
}

}  // namespace
}  // namespace stepwell
