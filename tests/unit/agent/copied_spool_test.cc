// A writer whose spool was copied, and whose copy another agent sends: what that one sent is stored, and is sent by nobody
// again, whatever becomes of the writer later.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/agent/served_writer.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kFrames = 12;
constexpr int kOfCopy = 5;  // what the copy sent

// An agent's end of a stream, and what it sent on it.
class Line {
 public:
  Line(const std::string& directory, const WriterIdentity& identity, const Clock& clock)
      : identity_(identity), clock_(clock) {
    auto served =
        ServedWriter::Open(FileDescriptor(open(directory.c_str(), O_RDONLY | O_DIRECTORY)),
                           identity, {sender_, clock, AgentFace(), {}});
    EXPECT_TRUE(served.ok()) << served.status();
    served_ = *std::move(served);
  }
  ServedWriter& served() { return *served_; }
  const std::vector<pb::Chunk>& chunks() const { return chunks_; }

  // A connection, on which the writer is opened as `committed` says; a successor of it as one that is new, with credit.
  void Connect(const pb::Opened& committed) {
    committed_ = committed;
    sender_.OnDisconnected();
    sender_.OnConnected();
    Talk();
  }
  // Until it has no more to say.
  void Talk() {
    while (auto said = sender_.Next(clock_.Monotonic())) {
      pb::StreamChunksResponse answer;
      if (said->has_chunk()) {
        chunks_.push_back(said->chunk());
        answer.mutable_ack()->set_writer(said->chunk().writer());
        answer.mutable_ack()->set_committed_sequence(said->chunk().sequence());
        answer.mutable_ack()->set_credit_bytes(1 << 20);
      } else if (said->has_open()) {
        answer.mutable_opened()->set_credit_bytes(1 << 20);
        if (said->open().writer() == identity_.writer.ToBytes()) {
          *answer.mutable_opened() = committed_;
        }
        answer.mutable_opened()->set_writer(said->open().writer());
      } else {
        continue;
      }
      sender_.OnMessage(answer, clock_.Monotonic());
    }
  }

 private:
  const WriterIdentity identity_;
  const Clock& clock_;
  Sender sender_;
  std::unique_ptr<ServedWriter> served_;
  pb::Opened committed_;
  std::vector<pb::Chunk> chunks_;
};

class CopiedSpoolOfAWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-copied-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    ASSERT_TRUE(fs::create_directory(path_ + "/own"));
    identity_.writer = Uuid::Random();
    identity_.trial = "t";
  }
  void TearDown() override { fs::remove_all(path_); }

  static void Seal(ServedWriter& served) {
    const std::uint32_t ref =
        served.catalog().Ref({TickGroupKind::kCadence, 1}, {"g", "n", {}, ""});
    for (int number = 1; number <= kFrames; ++number) {
      const RefValue tick[] = {{ref, static_cast<double>(number)}};
      served.builder().AddTick(served.catalog().definition(ref).tick_group(), number, -1, tick);
      ASSERT_TRUE(served.Seal(Checkpoint()).ok());
    }
  }
  static pb::Opened Committed(std::uint64_t sequence, std::uint32_t crc32c, std::int64_t credit) {
    pb::Opened opened;
    opened.set_committed_sequence(sequence);
    opened.set_committed_crc32c(crc32c);
    opened.set_credit_bytes(credit);
    return opened;
  }

  std::string path_;
  WriterIdentity identity_;
  FakeClock clock_;
};

TEST_F(CopiedSpoolOfAWriterTest, AgentRule03_WhatItSentMovesToNoSuccessor) {
  Line own(path_ + "/own", identity_, clock_);
  ASSERT_NO_FATAL_FAILURE(Seal(own.served()));
  fs::copy(path_ + "/own", path_ + "/copy", fs::copy_options::recursive);
  Line copy(path_ + "/copy", identity_, clock_);
  copy.Connect(Committed(0, 0, 1 << 20));
  ASSERT_EQ(copy.chunks().size(), kFrames);
  // There is no credit yet when the stream breaks, and the next one's master holds what is not in this spool.
  own.Connect(Committed(kOfCopy, copy.chunks()[kOfCopy - 1].crc32c(), 0));
  own.Connect(Committed(1000, 0, 1 << 20));
  EXPECT_TRUE(own.chunks().empty());
  own.served().Tend();
  own.Talk();
  ASSERT_EQ(own.chunks().size(), kFrames - kOfCopy);
  for (std::size_t i = 0; i < own.chunks().size(); ++i) {
    EXPECT_NE(own.chunks()[i].writer(), identity_.writer.ToBytes());
    EXPECT_EQ(own.chunks()[i].body(), copy.chunks()[kOfCopy + i].body());
  }
}

}  // namespace
}  // namespace stepwell::agent
