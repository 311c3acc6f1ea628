// A writer whose only token is refused for a while: what it records waits, and how often its agent's log says why.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "client/agent/outbound_writer.h"

namespace stepwell::agent {
namespace {

class RefusedTokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-refused-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    Spool::Options options;
    options.writer = Uuid::Random();
    auto spool = Spool::Open(
        FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), options, clock_);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    WriterIdentity identity;
    identity.trial = "t";
    identity.token = "its own";
    writer_ = std::make_unique<OutboundWriter>(identity, AgentFace(), spool_);
    writer_->OnConnected();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  void AppendFrame() {
    const Spool::Sealed sealed{1000, {1, 1, 1}, "body"};
    ASSERT_TRUE(spool_->AppendFrames({&sealed, 1}, Checkpoint()).ok());
  }
  void Refuse() {
    pb::StreamChunksResponse message;
    message.mutable_refused()->set_reason("TOKEN_REFUSED");
    message.mutable_refused()->set_message("no such token");
    message.mutable_refused()->set_terminal(true);
    ASSERT_TRUE(writer_->OnMessage(message, clock_.Monotonic()));
  }
  // Each Open is refused; how many there were.
  int TalkInVain() {
    int opens = 0;
    while (const auto message = writer_->Next(clock_.Monotonic())) {
      EXPECT_FALSE(message->has_chunk());
      if (!message->has_open()) continue;
      Refuse();
      ++opens;
    }
    return opens;
  }

  std::string path_;
  FakeClock clock_;
  std::shared_ptr<Spool> spool_;
  std::unique_ptr<OutboundWriter> writer_;
};

TEST_F(RefusedTokenTest, KeepsSpoolingSaysSoOnceAMinuteAndDeliversAllOnceItIsTaken) {
  constexpr int kMinutes = 10;
  ::testing::internal::CaptureStderr();
  int open_count = 0;
  for (int second = 0; second < 60 * kMinutes; ++second) {
    if (second % 10 == 0) AppendFrame();
    open_count += TalkInVain();
    clock_.Advance(absl::Seconds(1));
    // Another stream shows it at once.
    if (second % 25 == 24) {
      writer_->OnDisconnected();
      writer_->OnConnected();
    }
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  int lines = 0;
  for (std::size_t at = 0; (at = log.find("writer_refused", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_GT(open_count, 2 * kMinutes) << "far more often than it is to be said";
  EXPECT_LE(lines, kMinutes) << log;
  EXPECT_GE(lines, kMinutes * 2 / 3) << log;
  EXPECT_NE(log.find("TOKEN_REFUSED"), std::string::npos);
  EXPECT_EQ(log.find("its own"), std::string::npos);

  clock_.Advance(absl::Minutes(1));
  const auto open = writer_->Next(clock_.Monotonic());
  ASSERT_TRUE(open && open->has_open());
  pb::StreamChunksResponse opened;
  opened.mutable_opened()->set_credit_bytes(1 << 20);
  ASSERT_TRUE(writer_->OnMessage(opened, clock_.Monotonic()));
  std::uint64_t sent = 0;
  while (const auto message = writer_->Next(clock_.Monotonic())) {
    if (message->has_chunk()) {
      EXPECT_EQ(message->chunk().sequence(), ++sent);
    }
  }
  EXPECT_EQ(sent, 6U * kMinutes);
}

}  // namespace
}  // namespace stepwell::agent
