// The limits of a running master: who comes too many or too large is told precisely, in words and in
// google.rpc details, and everybody else goes on.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

#include "server/limits.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/error_details.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using google::rpc::BadRequest;
using google::rpc::ErrorInfo;
using google::rpc::RetryInfo;

class LimitsTest : public SpineTest {
 protected:
  void ExpectDetails(const grpc::Status& status, const std::string& reason,
                     std::int64_t retry_seconds) {
    const auto info = DetailOf<ErrorInfo>(status);
    ASSERT_TRUE(info.has_value()) << status.error_message();
    EXPECT_EQ(info->reason(), reason);
    EXPECT_EQ(info->domain(), "stepwell");
    const auto retry = DetailOf<RetryInfo>(status);
    ASSERT_EQ(retry.has_value(), retry_seconds > 0);
    EXPECT_EQ(retry ? retry->retry_delay().seconds() : 0, retry_seconds);
  }

  void ExpectGoesOn(RawStream& stream) {
    ++sequence_;
    ASSERT_TRUE(
        stream.Send(ChunkMessage(healthy_, sequence_, OneColumn(1, NowUs(), 1000, {1.0, 2.0}))));
    ASSERT_TRUE(stream.WaitAck(healthy_, sequence_).has_value()) << master_->LogTail();
  }

  // Each on a connection of its own: calls of one share its flow control. Its window must not grow
  // with the speed of the machine, or all would be through before the last has begun.
  struct Stalled {
    explicit Stalled(const std::string& address) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
      arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65536);
      query = v1::QueryService::NewStub(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    }
    std::unique_ptr<v1::QueryService::Stub> query;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ReadSamplesResponse>> reader;
  };
  std::vector<std::unique_ptr<Stalled>> Stall(int count) const {
    v1::ReadSamplesRequest samples;
    samples.mutable_trial()->set_external_id("read");
    samples.set_page_samples(1000);
    std::vector<std::unique_ptr<Stalled>> stalled;
    for (int i = 0; i < count; ++i) {
      stalled.push_back(std::make_unique<Stalled>(master_->grpc_address()));
      Stalled& call = *stalled.back();
      call.reader = call.query->ReadSamples(&call.context, samples);
      v1::ReadSamplesResponse one;
      EXPECT_TRUE(call.reader->Read(&one)) << i;
    }
    return stalled;
  }
  // More than the flow control of a call lets through unread.
  void FillTrial(RawStream& stream) {
    Open(stream, healthy_, "read");
    for (int i = 0; i < 4; ++i) {
      ++sequence_;
      ASSERT_TRUE(stream.Send(
          ChunkMessage(healthy_, sequence_,
                       OneColumn(1, NowUs(), 1, std::vector<double>(kChunkSamplesMax, i + 0.1)))));
    }
    ASSERT_TRUE(stream.WaitAck(healthy_, sequence_, absl::Seconds(60)).has_value());
  }
  grpc::Status AskForTrial(const std::string& name) const {
    const auto query = v1::QueryService::NewStub(client_->channel());
    v1::GetTrialRequest request;
    request.mutable_trial()->set_external_id(name);
    grpc::ClientContext context;
    v1::GetTrialResponse response;
    return query->GetTrial(&context, request, &response);
  }

  const Uuid healthy_ = Uuid::Random();
  std::uint64_t sequence_ = 0;
};

TEST_F(LimitsTest, OneStreamTooManyIsSentAwayUntilAnotherEnds) {
  StartMaster({"--streams-max", "1"});
  auto first = std::make_unique<RawStream>(*client_);
  Open(*first, healthy_, "only one");
  {
    RawStream second(*client_);
    const grpc::Status status = second.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), "this master serves 1 streams, which is its limit");
    ExpectDetails(status, "STREAM_LIMIT", 5);
  }
  ExpectGoesOn(*first);
  first.reset();
  EXPECT_TRUE(Eventually(
      [&] {
        RawStream next(*client_);
        next.Send(OpenMessage({.writer = healthy_, .external_id = "only one"}));
        return next.WaitFor([](const auto& answer) { return answer.has_opened(); }).has_value();
      },
      absl::Seconds(20)));
}

TEST_F(LimitsTest, AMessageThatIsTooLargeIsRefusedAndTheStreamGoesOn) {
  StartMaster();
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, healthy_, "large").trial_id();
  v1::StreamChunksRequest large = DefinitionMessage(healthy_, {{.ref = 2}});
  large.mutable_definitions()->mutable_definitions(0)->set_unit(std::string(kMessageBytesMax, 'u'));
  ASSERT_TRUE(stream.Send(large));
  const auto answer = stream.WaitFor([](const auto& message) { return message.has_refused(); });
  ASSERT_TRUE(answer.has_value());
  const v1::Refused& refused = answer->refused();
  EXPECT_EQ(refused.reason(), "MESSAGE_BYTES");
  EXPECT_EQ(refused.code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(refused.message(), absl::StrCat("the message has ", large.ByteSizeLong(),
                                            " bytes, allowed are at most 4194304"));
  EXPECT_FALSE(refused.terminal());
  ExpectGoesOn(stream);
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Samples(trial_id, "value").size(), 2U);
}

// Each takes two bytes to send, and a hundred times as many to build.
TEST_F(LimitsTest, AMessageOfTooManyPartsIsRefusedUnbuiltAndTheStreamGoesOn) {
  StartMaster();
  RawStream stream(*client_);
  Open(stream, healthy_, "parts");
  v1::StreamChunksRequest many;
  many.mutable_definitions()->set_writer(healthy_.ToBytes());
  for (int i = 0; i < 600'000; ++i) many.mutable_definitions()->add_definitions();
  ASSERT_LT(many.ByteSizeLong(), kMessageBytesMax);
  ASSERT_TRUE(stream.Send(many));
  const auto answer = stream.WaitFor([](const auto& message) { return message.has_refused(); });
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->refused().reason(), "MESSAGE_PARTS");
  EXPECT_EQ(answer->refused().code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_THAT(answer->refused().message(), ::testing::HasSubstr("64 MiB"));
  EXPECT_FALSE(answer->refused().terminal());
  ExpectGoesOn(stream);
}

TEST_F(LimitsTest, AUnaryCallThatIsTooLargeStoresNothing) {
  StartMaster();
  v1::WriteChunksRequest request;
  *request.add_messages() = OpenMessage({.writer = healthy_, .external_id = "unary"});
  for (std::uint64_t i = 1; i <= 5; ++i) {
    *request.add_messages() = ChunkMessage(healthy_, i, std::string(1 << 20, 'x'));
  }
  grpc::ClientContext context;
  v1::WriteChunksResponse response;
  const grpc::Status status = client_->ingest().WriteChunks(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), absl::StrCat("messages have ", request.ByteSizeLong(),
                                                 " bytes, allowed are at most 4194304"));
  ExpectDetails(status, "MESSAGE_BYTES", 0);
  const auto bad = DetailOf<BadRequest>(status);
  ASSERT_TRUE(bad.has_value());
  ASSERT_EQ(bad->field_violations_size(), 1);
  EXPECT_EQ(bad->field_violations(0).field(), "messages");
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.writers where trial_id > $1", 0), 0);
}

TEST_F(LimitsTest, AMessageBeyondAllReadingEndsItsStreamAndNoOther) {
  StartMaster();
  const Uuid hostile = Uuid::Random();
  const Uuid beside = Uuid::Random();
  RawStream elsewhere(*client_);
  Open(elsewhere, healthy_, "elsewhere");
  std::int64_t trial_id = 0;
  {
    RawStream shared(*client_);
    Open(shared, hostile, "hostile");
    trial_id = Open(shared, beside, "beside", 1).trial_id();
    ASSERT_TRUE(shared.Send(ChunkMessage(beside, 1, OneColumn(1, NowUs(), 1000, {1}))));
    ASSERT_TRUE(shared.WaitAck(beside, 1).has_value());
    shared.Send(ChunkMessage(beside, 2, OneColumn(1, NowUs(), 1000, {2})));
    shared.Send(ChunkMessage(hostile, 1, std::string(17 << 20, 'x')));
    shared.Send(ChunkMessage(beside, 3, OneColumn(1, NowUs(), 1000, {3})));
    const grpc::Status status = shared.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    ExpectGoesOn(elsewhere);
  }
  // The one beside it opens anew and sends what it has no ack of.
  RawStream again(*client_);
  const v1::Opened opened = Open(again, beside, "beside", 1);
  EXPECT_GE(opened.committed_sequence(), 1U);
  EXPECT_LE(opened.committed_sequence(), 2U);
  for (std::uint64_t i = 2; i <= 4; ++i) {
    const auto value = static_cast<double>(i);
    ASSERT_TRUE(again.Send(ChunkMessage(beside, i, OneColumn(1, NowUs(), 1000, {value}))));
  }
  ASSERT_TRUE(again.WaitAck(beside, 4).has_value()) << master_->LogTail();
  ExpectGoesOn(elsewhere);
  ASSERT_TRUE(client_->Flush().ok());
  std::vector<double> values;
  for (const StoredSample& sample : Samples(trial_id, "value")) values.push_back(sample.value);
  EXPECT_THAT(values, ::testing::UnorderedElementsAre(1, 2, 3, 4));
}

TEST_F(LimitsTest, ReadsThatNobodyTakesFillTheMastersTurnsAndTheNextIsSentAway) {
  StartMaster();
  RawStream stream(*client_);
  FillTrial(stream);
  std::vector<std::unique_ptr<Stalled>> stalled = Stall(16);
  const grpc::Status refused = AskForTrial("read");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(), "16 reads are under way, limit 16: come again");
  ExpectDetails(refused, "READS_UNDER_WAY", 1);
  ExpectGoesOn(stream);
  stalled.clear();
  EXPECT_TRUE(Eventually([&] { return AskForTrial("read").ok(); }, absl::Seconds(30)));

  const grpc::Status missing = AskForTrial("unread");
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
  ExpectDetails(missing, "NOT_FOUND", 0);
}

// Commits stand still while the file is there; the database answers all else.
TEST_F(LimitsTest, ReadsAreShedWhileSamplesWaitAndNoWriterIsRefused) {
  const std::string hold = scratch_ / "hold";
  StartMaster({"--queue-bytes", "1048576"}, "commit_before_commit=while:" + hold);
  RawStream stream(*client_);
  FillTrial(stream);
  const std::vector<std::unique_ptr<Stalled>> stalled = Stall(4);
  EXPECT_TRUE(AskForTrial("read").ok());
  std::ofstream(hold) << "held";
  // The first is what the committer holds, the second fills the queue, the third waits to be decoded: one more would wait
  // here.
  for (int i = 0; i < 3; ++i) {
    ++sequence_;
    ASSERT_TRUE(stream.Send(
        ChunkMessage(healthy_, sequence_,
                     OneColumn(1, NowUs(), 1, std::vector<double>(kChunkSamplesMax, i + 0.1)))));
  }
  grpc::Status shed;
  EXPECT_TRUE(Eventually(
      [&] {
        shed = AskForTrial("read");
        return !shed.ok();
      },
      absl::Seconds(30)));
  EXPECT_EQ(shed.error_message(),
            "4 reads are under way, limit 4 while samples wait for their commit: come again");
  ExpectDetails(shed, "READS_UNDER_WAY", 1);
  unlink(hold.c_str());
  ASSERT_TRUE(stream.WaitAck(healthy_, sequence_, absl::Seconds(60)).has_value());
  EXPECT_TRUE(AskForTrial("read").ok());
}

}  // namespace
}  // namespace stepwell::testing
