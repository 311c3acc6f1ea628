// A database that takes commits and lets nothing be folded: what is acked and waits for its fold has a bound in the
// master's memory, and beyond it nobody has credit until folds go on. Nothing is lost or refused meanwhile.
#include <gmock/gmock.h>

#include "tests/e2e/spine.h"
#include "tests/support/postgres.h"

namespace stepwell::testing {
namespace {

using ::testing::StartsWith;

constexpr int kChunkSamples = 50'000;
// 256 MiB of ticks with a column of doubles: 20 bytes each.
constexpr std::uint64_t kChunksMax = 600;

class FullHeadsTest : public SpineTest {
 protected:
  // A client that keeps to its credit.
  struct Sender {
    explicit Sender(IngestClient& client) : stream(client) {}
    RawStream stream;
    Uuid writer = Uuid::Random();
    std::int64_t credit_bytes = 0;
    std::uint64_t sequence = 0;
    std::uint64_t acked = 0;
    std::int64_t chunk_bytes = 0;

    std::int64_t under_way() const {
      return static_cast<std::int64_t>(sequence - acked) * chunk_bytes;
    }
  };

  void SendChunk(Sender& sender) {
    std::vector<double> values(kChunkSamples);
    for (int i = 0; i < kChunkSamples; ++i) values[static_cast<std::size_t>(i)] = i;
    const std::int64_t first_us =
        start_us_ + static_cast<std::int64_t>(sender.sequence) * kChunkSamples;
    const auto message =
        ChunkMessage(sender.writer, ++sender.sequence, OneColumn(1, first_us, 1, values));
    sender.chunk_bytes = static_cast<std::int64_t>(message.ByteSizeLong());
    ASSERT_TRUE(sender.stream.Send(message)) << master_->LogTail();
  }
  void TakeAck(Sender& sender) {
    const auto answer =
        sender.stream.WaitFor([](const auto& message) { return message.has_ack(); });
    ASSERT_TRUE(answer.has_value()) << "of chunk " << sender.sequence << "\n" << master_->LogTail();
    EXPECT_EQ(answer->ack().rejections_size(), 0) << answer->ShortDebugString();
    sender.acked = std::max(sender.acked, answer->ack().committed_sequence());
    sender.credit_bytes = answer->ack().credit_bytes();
  }

  const std::int64_t start_us_ = NowUs() - 3'600'000'000;
};

TEST_F(FullHeadsTest, NobodyHasCreditWhileFoldsWaitAndAllGoesOnByItself) {
  StartMaster();
  Sender sender(*client_);
  const v1::Opened opened = Open(sender.stream, sender.writer, "full");
  sender.credit_bytes = opened.credit_bytes();
  ASSERT_GT(sender.credit_bytes, 0);
  const auto held = Connect(master_->database_url());
  ASSERT_TRUE(held->ExecScript("begin; lock table stepwell.recent in access exclusive mode").ok());
  while (sender.credit_bytes > 0 && sender.sequence < kChunksMax && !HasFailure()) {
    SendChunk(sender);
    while (sender.credit_bytes > 0 && sender.under_way() >= sender.credit_bytes && !HasFailure()) {
      TakeAck(sender);
    }
  }
  ASSERT_LT(sender.sequence, kChunksMax) << "it was given credit all the while";
  // What was under way is acked all the same; it is no outage.
  while (sender.acked < sender.sequence && !HasFailure()) TakeAck(sender);
  EXPECT_EQ(sender.credit_bytes, 0);
  EXPECT_THAT(master_->Get("/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(client_->GetStatus().database_up());

  // Heads are emptied at once, maybe before anybody has looked how full they are.
  ASSERT_TRUE(held->ExecScript("commit").ok());
  while (sender.credit_bytes == 0 && !HasFailure()) TakeAck(sender);
  SendChunk(sender);
  while (sender.acked < sender.sequence && !HasFailure()) TakeAck(sender);
  ASSERT_TRUE(sender.stream.Send(CloseMessage(sender.writer, sender.sequence)));
  ASSERT_TRUE(client_->Flush(absl::Seconds(60)).ok()) << master_->LogTail();
  EXPECT_EQ(QueryNumber("select sum(sample_count)::bigint from stepwell.usage where trial_id = $1",
                        opened.trial_id()),
            static_cast<std::int64_t>(sender.sequence) * kChunkSamples);
  std::printf("no credit after %llu chunks of %d samples\n",
              static_cast<unsigned long long>(sender.sequence - 1), kChunkSamples);
}

}  // namespace
}  // namespace stepwell::testing
