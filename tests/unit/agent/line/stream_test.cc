// What becomes of a connection on which nothing moves any more.
#include "client/agent/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "client/agent/outbound_writer.h"
#include "tests/unit/agent/line/fake_master.h"

namespace stepwell::agent {
namespace {

constexpr int kFrames = 16;
constexpr std::size_t kFrameBytes = 1 << 20;

class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-stream-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    master_.Start();
    master_.SetCredit(std::int64_t{1} << 30);
    Spool::Options options;
    options.writer = Uuid::Random();
    auto spool = Spool::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)), options,
                             RealClock::Get());
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    WriterIdentity identity;
    identity.trial = "t";
    sender_.Add(std::make_shared<OutboundWriter>(identity, AgentFace(), spool_));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // More than what gRPC takes without the other side reading.
  void AppendFrames() {
    pb::ChunkBody body;
    body.add_losses()->set_reason(std::string(kFrameBytes, 'x'));
    for (int i = 0; i < kFrames; ++i) {
      const Spool::Sealed sealed{1000, {1, 1, 1}, body.SerializeAsString()};
      ASSERT_TRUE(spool_->AppendFrames({&sealed, 1}, Checkpoint()).ok());
    }
  }
  static bool TendUntil(Stream& stream, const std::function<bool()>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (!holds()) {
      if (absl::Now() > deadline) return false;
      stream.Tend();
      absl::SleepFor(absl::Milliseconds(10));
    }
    return true;
  }

  std::string path_;
  FakeMaster master_;
  Sender sender_;
  std::shared_ptr<Spool> spool_;
};

// Its machine and its gRPC live on: only that it takes nothing shows.
TEST_F(StreamTest, AMasterThatTakesNothingMoreIsLeftThoughAMessageIsStuck) {
  Stream stream({master_.address(), {}, absl::Seconds(1)}, sender_, RealClock::Get(), [] {});
  stream.Start();
  ASSERT_TRUE(TendUntil(stream, [&] { return master_.stream_count() == 1; }));
  master_.Pause();
  AppendFrames();
  EXPECT_TRUE(TendUntil(stream, [&] { return master_.stream_count() >= 2; }));
  master_.Resume();
  EXPECT_TRUE(TendUntil(stream, [&] { return spool_->acked().sequence == kFrames; }));
  stream.Stop();
  const FakeMaster::Writer writer = master_.writers().begin()->second;
  EXPECT_EQ(writer.chunks.size(), static_cast<std::size_t>(kFrames));
  EXPECT_TRUE(writer.wrongs.empty()) << writer.wrongs.front();
}

TEST_F(StreamTest, AnIdleStreamIsNotSilent) {
  Stream stream({master_.address(), {}, absl::Milliseconds(200)}, sender_, RealClock::Get(), [] {});
  stream.Start();
  AppendFrames();
  ASSERT_TRUE(TendUntil(stream, [&] { return spool_->acked().sequence == kFrames; }));
  const absl::Time until = absl::Now() + absl::Seconds(1);
  TendUntil(stream, [&] { return absl::Now() > until; });
  EXPECT_EQ(master_.stream_count(), 1);
  stream.Stop();
}

}  // namespace
}  // namespace stepwell::agent
