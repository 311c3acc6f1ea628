// A copy of the database is put back that has the same system identifier, timeline and incarnation as the one it
// takes the place of: nothing in it tells. Whoever was acked more than it holds does, and the master says so.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

namespace fs = std::filesystem;

class SetBackDatabaseTest : public SpineTest {
 protected:
  // cp -a: owner, modes and times stay. REQUIRES: no server runs on `from`.
  static void CopyTree(const std::string& from, const std::string& to) {
    ChildProcess copy;
    copy.Start({"/bin/cp", "-a", from, to}, {}, "/dev/null");
    ASSERT_EQ(copy.Wait(absl::Seconds(60)), "exit 0");
  }
  void Restart() {
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
    client_ = std::make_unique<IngestClient>(master_->grpc_address());
  }
  // As an agent does that knows of `acked`; what the master holds of it.
  std::uint64_t OpenAcked(RawStream& stream, std::uint64_t acked) {
    auto message = OpenMessage({.writer = writer_, .external_id = "run"});
    message.mutable_open()->set_acked_sequence(acked);
    EXPECT_TRUE(stream.Send(message));
    const auto opened = stream.WaitFor([](const auto& answer) { return answer.has_opened(); });
    EXPECT_TRUE(opened.has_value()) << master_->LogTail();
    EXPECT_TRUE(stream.Send(DefinitionMessage(writer_, {{}})));
    return opened ? opened->opened().committed_sequence() : 0;
  }
  void Commit(RawStream& stream, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
      const auto value = static_cast<double>(sequence);
      ASSERT_TRUE(stream.Send(
          ChunkMessage(writer_, sequence, OneColumn(1, NowUs(), 1000, {value, value + 0.5}))));
    }
    ASSERT_TRUE(stream.WaitAck(writer_, last).has_value()) << master_->LogTail();
  }
  int told() const { return master_->CountInLog("acked_not_held"); }

  const Uuid writer_ = Uuid::Random();
};

TEST_F(SetBackDatabaseTest, IsToldWhereAWriterWasAckedMoreThanItHolds) {
  StartMaster();
  {
    RawStream stream(*client_);
    ASSERT_EQ(OpenAcked(stream, 0), 0U);
    Commit(stream, 1, 3);
  }
  ASSERT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
  CopyTree(master_->data_directory(), scratch_ / "copy");
  Restart();
  {
    RawStream stream(*client_);
    EXPECT_EQ(OpenAcked(stream, 3), 3U);
    Commit(stream, 4, 5);
  }
  {
    RawStream stream(*client_);
    EXPECT_EQ(OpenAcked(stream, 4), 5U) << "acks that the client did not hear";
  }
  EXPECT_EQ(told(), 0) << master_->LogTail();

  ASSERT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
  fs::remove_all(master_->data_directory());
  CopyTree(scratch_ / "copy", master_->data_directory());
  Restart();
  {
    RawStream stream(*client_);
    EXPECT_EQ(OpenAcked(stream, 5), 3U);
    Commit(stream, 4, 5);
  }
  EXPECT_EQ(told(), 1) << master_->LogTail();
  {
    RawStream stream(*client_);
    EXPECT_EQ(OpenAcked(stream, 5), 5U);
  }
  EXPECT_EQ(told(), 1) << "what was told again is held";
}

}  // namespace
}  // namespace stepwell::testing
