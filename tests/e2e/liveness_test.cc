// A writer that has nothing to say says that it lives.

#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

class LivenessTest : public SpineTest {
 protected:
  static v1::StreamChunksRequest HeartbeatMessage(const Uuid& writer) {
    v1::StreamChunksRequest message;
    message.mutable_heartbeat()->set_writer(writer.ToBytes());
    message.mutable_heartbeat()->set_sent_time_us(NowUs());
    return message;
  }

  v1::GetTrialResponse Trial(const std::string& name) {
    const auto query = v1::QueryService::NewStub(client_->channel());
    grpc::ClientContext context;
    v1::GetTrialRequest request;
    request.mutable_trial()->set_external_id(name);
    v1::GetTrialResponse response;
    const grpc::Status status = query->GetTrial(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.writers_size(), 1);
    return response;
  }
};

TEST_F(LivenessTest, AHeartbeatIsHeardAndChangesNothingElse) {
  StartMaster();
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  Open(stream, writer, "alive");
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1}))));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value());
  const v1::GetTrialResponse before = Trial("alive");
  ASSERT_EQ(before.writers_size(), 1);
  const std::int64_t seen_us = before.writers(0).seen_time_us();
  EXPECT_GT(seen_us, 0);

  const std::int64_t sent_us = NowUs();
  ASSERT_TRUE(stream.Send(HeartbeatMessage(writer)));
  v1::GetTrialResponse after;
  EXPECT_TRUE(Eventually(
      [&] {
        after = Trial("alive");
        return after.writers_size() == 1 && after.writers(0).seen_time_us() > seen_us;
      },
      absl::Seconds(20)));
  ASSERT_EQ(after.writers_size(), 1);
  EXPECT_GE(after.writers(0).seen_time_us(), sent_us) << "one machine, one clock";
  EXPECT_EQ(after.writers(0).state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_EQ(after.writers(0).committed_sequence(), 1U);
  EXPECT_EQ(client_->GetStatus().chunks_committed(), 1U);

  // One of somebody who is not here.
  ASSERT_TRUE(stream.Send(HeartbeatMessage(Uuid::Random())));
  const auto refused = stream.WaitFor([](const auto& answer) { return answer.has_refused(); });
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->refused().reason(), "NOT_OPEN");
  EXPECT_EQ(refused->refused().message(), "the writer is not open on this stream; send Open first");
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 2, OneColumn(1, NowUs(), 1000, {2}))));
  EXPECT_TRUE(stream.WaitAck(writer, 2).has_value()) << "the stream goes on";
}

TEST_F(LivenessTest, AMasterThatHeardNothingOfAWriterSinceItsStartNamesNoTime) {
  StartMaster();
  const Uuid writer = Uuid::Random();
  {
    RawStream stream(*client_);
    Open(stream, writer, "quiet");
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1}))));
    ASSERT_TRUE(stream.WaitAck(writer, 1).has_value());
  }
  master_->Kill();
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  client_ = std::make_unique<IngestClient>(master_->grpc_address());
  ASSERT_TRUE(
      Eventually([&] { return client_->GetStatus().role() != "standby"; }, absl::Seconds(20)));
  const v1::GetTrialResponse after = Trial("quiet");
  ASSERT_EQ(after.writers_size(), 1);
  EXPECT_EQ(after.writers(0).seen_time_us(), 0);
  // Silence counts from the start on.
  EXPECT_EQ(after.writers(0).state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_EQ(after.trial().state(), v1::TRIAL_STATE_RUNNING);
}

}  // namespace
}  // namespace stepwell::testing
