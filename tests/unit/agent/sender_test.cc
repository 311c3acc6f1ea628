// Who of more writers than a master takes on one stream speaks.
#include "client/agent/sender.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/clock.h"

namespace stepwell::agent {
namespace {

class SenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-sender-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    for (std::size_t i = 0; i < kCount; ++i) {
      Spool::Options options;
      options.writer = Uuid::Random();
      const std::filesystem::path folder = path_ / std::to_string(i);
      std::filesystem::create_directory(folder);
      auto spool = Spool::Open(FileDescriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY)),
                               options, clock_);
      ASSERT_TRUE(spool.ok()) << spool.status();
      auto writer =
          std::make_shared<OutboundWriter>(WriterIdentity(), AgentFace(), *std::move(spool));
      writers_[options.writer.ToBytes()] = writer;
      sender_.Add(writer);
    }
    sender_.OnConnected();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // All that is said now: whose Opens, and whose Closes.
  struct Said {
    std::set<std::string> opens;
    std::set<std::string> closes;
  };
  Said Talk() {
    Said said;
    while (true) {
      const bool has_next = sender_.HasNext(clock_.Monotonic());
      const auto message = sender_.Next(clock_.Monotonic());
      EXPECT_EQ(has_next, message.has_value());
      if (!message) return said;
      if (message->has_open()) said.opens.insert(message->open().writer());
      if (message->has_close()) said.closes.insert(message->close().writer());
    }
  }
  void Open(const std::set<std::string>& ids) {
    for (const std::string& id : ids) {
      pb::StreamChunksResponse message;
      message.mutable_opened()->set_writer(id);
      message.mutable_opened()->set_credit_bytes(1 << 20);
      sender_.OnMessage(message, clock_.Monotonic());
    }
  }
  Sender::Then Refuse(const std::string& id, const std::string& reason) {
    pb::StreamChunksResponse message;
    message.mutable_refused()->set_writer(id);
    message.mutable_refused()->set_reason(reason);
    message.mutable_refused()->set_terminal(true);
    return sender_.OnMessage(message, clock_.Monotonic());
  }

  static constexpr std::size_t kCount = Sender::kOpenMax + 3;
  std::filesystem::path path_;
  FakeClock clock_;
  Sender sender_;
  std::map<std::string, std::shared_ptr<OutboundWriter>> writers_;
};

TEST_F(SenderTest, BeyondThoseThatAStreamTakesWritersWaitUntilOneIsOver) {
  const std::set<std::string> first = Talk().opens;
  EXPECT_EQ(first.size(), Sender::kOpenMax);
  Open(first);
  EXPECT_TRUE(Talk().opens.empty());
  // One closes.
  const std::string& closing = *first.begin();
  writers_[closing]->RequestClose(false);
  EXPECT_EQ(Talk().closes, std::set<std::string>{closing});
  EXPECT_TRUE(Talk().opens.empty()) << "its place is its own until that is acked";
  pb::StreamChunksResponse closed;
  closed.mutable_ack()->set_writer(closing);
  closed.mutable_ack()->set_closed(true);
  EXPECT_EQ(sender_.OnMessage(closed, clock_.Monotonic()), Sender::Then::kMaySend);
  const std::set<std::string> second = Talk().opens;
  ASSERT_EQ(second.size(), 1u);
  EXPECT_FALSE(first.contains(*second.begin()));
  Open(second);
  // One is refused.
  EXPECT_EQ(Refuse(*first.rbegin(), "TRIAL_ARCHIVED"), Sender::Then::kMaySend);
  const std::set<std::string> third = Talk().opens;
  ASSERT_EQ(third.size(), 1u);
  Open(third);
  // One leaves.
  sender_.Remove(*writers_[*third.begin()]);
  EXPECT_EQ(Talk().opens.size(), 1u);
}

TEST_F(SenderTest, AnotherConnectionHasAllPlacesAgain) {
  Open(Talk().opens);
  sender_.OnDisconnected();
  EXPECT_TRUE(Talk().opens.empty());
  sender_.OnConnected();
  EXPECT_EQ(Talk().opens.size(), Sender::kOpenMax);
}

}  // namespace
}  // namespace stepwell::agent
