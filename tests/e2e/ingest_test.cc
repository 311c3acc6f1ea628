// The line from a client's chunk to SQL, on a real master.
#include <cmath>
#include <cstring>

#include "absl/time/clock.h"
#include "base/stream_metadata.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

class IngestTest : public SpineTest {};

TEST_F(IngestTest, OneChunkIsAckedAndVisibleAfterFlush) {
  StartMaster();
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  const v1::Opened opened = Open(stream, writer, "first");
  EXPECT_EQ(opened.generation(), 1U);
  EXPECT_EQ(opened.committed_sequence(), 0U);
  EXPECT_GE(opened.trial_id(), 1'000'000'000);
  EXPECT_GT(opened.credit_bytes(), 0);
  const std::int64_t now_us = NowUs();
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, now_us, 1000, {1.5, -2.5, 3.25}))));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
  ASSERT_TRUE(client_->Flush().ok()) << master_->LogTail();
  const auto samples = Samples(opened.trial_id(), "value");
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].time_us, now_us);
  EXPECT_EQ(samples[2].time_us, now_us + 2000);
  EXPECT_EQ(samples[2].value, 3.25);
  EXPECT_EQ(samples[0].batch, -1);
  ASSERT_TRUE(stream.Send(CloseMessage(writer, 1)));
  const auto closed =
      stream.WaitFor([](const auto& answer) { return answer.has_ack() && answer.ack().closed(); });
  ASSERT_TRUE(closed.has_value());
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(Eventually(
      [&] {
        return QueryNumber("select state from stepwell.trials where trial_id = $1",
                           opened.trial_id()) == 2;
      },
      absl::Seconds(10)))
      << "the trial is not completed";
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
}

// An agent whose writers have all ended opens none of them.
TEST_F(IngestTest, AStreamTellsWhichDatabaseItIsBeforeAnyWriterOpens) {
  StartMaster();
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  const auto quiet = client_->ingest().StreamChunks(&context);
  quiet->WaitForInitialMetadata();
  const auto& metadata = context.GetServerInitialMetadata();
  const auto told = metadata.find(kIncarnationMetadata);
  ASSERT_NE(told, metadata.end());
  RawStream stream(*client_);
  EXPECT_EQ(std::string(told->second.data(), told->second.size()),
            Open(stream, Uuid::Random(), "any").incarnation());
  context.TryCancel();
  EXPECT_EQ(quiet->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(IngestTest, UnaryTwinAnswersLikeAStream) {
  StartMaster();
  const Uuid writer = Uuid::Random();
  v1::WriteChunksRequest request;
  *request.add_messages() = OpenMessage({.writer = writer, .trial_id = 7});
  *request.add_messages() = DefinitionMessage(writer, {{}});
  *request.add_messages() = ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1, 2}));
  *request.add_messages() = ChunkMessage(writer, 3, OneColumn(1, NowUs(), 1000, {3}));
  *request.add_messages() = ChunkMessage(writer, 2, OneColumn(9, NowUs(), 1000, {4}));
  *request.add_messages() = CloseMessage(writer, 2);
  grpc::ClientContext context;
  v1::WriteChunksResponse response;
  const grpc::Status status = client_->ingest().WriteChunks(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.messages_size(), 3);
  EXPECT_EQ(response.messages(0).opened().trial_id(), 7);
  EXPECT_EQ(response.messages(1).refused().reason(), "SEQUENCE_HOLE");
  EXPECT_EQ(response.messages(1).refused().expected_sequence(), 2U);
  const v1::Ack& ack = response.messages(2).ack();
  EXPECT_EQ(ack.committed_sequence(), 2U);
  EXPECT_TRUE(ack.closed());
  ASSERT_EQ(ack.rejections_size(), 1);
  EXPECT_EQ(ack.rejections(0).reason(), "UNKNOWN_REF");
  EXPECT_EQ(ack.rejections(0).sample_count(), 1U);
}

TEST_F(IngestTest, RestartKeepsWhatWasAckedAndNotFolded) {
  StartMaster({"--fold-interval", "10m"});
  const Uuid writer = Uuid::Random();
  std::int64_t trial_id = 0;
  {
    RawStream stream(*client_);
    trial_id = Open(stream, writer, "restart").trial_id();
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1, 2, 3}))));
    v1::StreamChunksRequest gap;
    gap.mutable_gap()->set_writer(writer.ToBytes());
    gap.mutable_gap()->set_first_sequence(2);
    gap.mutable_gap()->set_last_sequence(5);
    gap.mutable_gap()->set_cause(v1::GAP_CAUSE_SPOOL_FULL);
    ASSERT_TRUE(stream.Send(gap));
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 6, OneColumn(1, NowUs(), 1000, {4}))));
    ASSERT_TRUE(stream.WaitAck(writer, 6).has_value());
  }
  master_->Kill();
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  ASSERT_TRUE(client_->Flush().ok()) << master_->LogTail();
  EXPECT_EQ(client_->GetStatus().samples_replayed(), 4U);
  EXPECT_EQ(Samples(trial_id, "value").size(), 4U);
  RawStream stream(*client_);
  const v1::Opened opened = Open(stream, writer, "restart");
  EXPECT_EQ(opened.trial_id(), trial_id);
  EXPECT_EQ(opened.generation(), 2U);
  EXPECT_EQ(opened.committed_sequence(), 6U);
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 6, OneColumn(1, NowUs(), 1000, {4}))));
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 7, OneColumn(1, NowUs(), 1000, {5}))));
  ASSERT_TRUE(stream.WaitAck(writer, 7).has_value());
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Samples(trial_id, "value").size(), 5U);
}

TEST_F(IngestTest, ANewStreamFencesTheOlder) {
  StartMaster();
  const Uuid writer = Uuid::Random();
  RawStream older(*client_);
  Open(older, writer, "fence");
  RawStream newer(*client_);
  EXPECT_EQ(Open(newer, writer, "fence").generation(), 2U);
  const auto fenced = older.WaitFor([](const auto& answer) { return answer.has_refused(); });
  ASSERT_TRUE(fenced.has_value());
  EXPECT_EQ(fenced->refused().reason(), "FENCED");
  EXPECT_EQ(fenced->refused().code(), static_cast<int>(absl::StatusCode::kAborted));
  EXPECT_TRUE(fenced->refused().terminal());
  ASSERT_TRUE(older.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1, {1}))));
  const auto refused = older.WaitFor([](const auto& answer) { return answer.has_refused(); });
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->refused().reason(), "FENCED");
  ASSERT_TRUE(newer.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1, {2}))));
  EXPECT_TRUE(newer.WaitAck(writer, 1).has_value());
}

TEST_F(IngestTest, EveryDoubleComesBackBitByBit) {
  StartMaster();
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  const std::int64_t trial_id = Open(stream, writer, "doubles").trial_id();
  const std::vector<double> values = {std::numeric_limits<double>::quiet_NaN(),
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      -0.0,
                                      0.0,
                                      std::numeric_limits<double>::denorm_min(),
                                      std::numeric_limits<double>::max(),
                                      0.1};
  const std::int64_t start_us = NowUs();
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, start_us, 1000, values))));
  const auto ack = stream.WaitAck(writer, 1);
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->rejections_size(), 0);
  ASSERT_TRUE(client_->Flush().ok());
  const auto samples = Samples(trial_id, "value");
  ASSERT_EQ(samples.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::memcmp(&samples[i].value, &values[i], sizeof(double)), 0) << i;
  }
}

}  // namespace
}  // namespace stepwell::testing
