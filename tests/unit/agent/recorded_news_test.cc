// A visit is skipped where nothing is news. The failure that this must survive: an event, an end or a
// loss that no look calls news is seen late, or never where the process waits for it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "client/agent/recorded_writer.h"
#include "tests/unit/agent/recorded_directory.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class RecordedNewsTest : public ::testing::Test, protected RecordedDirectory {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-news-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    std::ofstream(fs::path(pattern) / "lock");
    Make(pattern);
    MakeRing(0, 64, 0);
    CountRings(1);
    Push(0, Begin(0));
    Age();
    auto writer = RecordedWriter::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)),
                                       Checkpoint());
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  void TearDown() override { fs::remove_all(path_); }

  // A directory that changed a moment ago may change again within the same time.
  void Age() {
    fs::last_write_time(path_, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  void CountRings(std::uint32_t count) {
    PutNumber<std::uint32_t>("header", offsetof(spool::WriterHeader, ring_count), count);
  }
  void PutHeader(std::size_t offset, std::uint64_t value) {
    PutNumber<std::uint64_t>("header", offset, value);
  }
  void Visit() {
    const absl::StatusOr<WriterStatus> status = writer_->ReadStatus();
    ASSERT_TRUE(status.ok()) << status.status();
    TextSink sink;
    ASSERT_TRUE(writer_->Drain(*status, RecordedWriter::Ending::kMoreToCome, sink).ok());
    writer_->StoreTails(writer_->TakeProgress().checkpoint);
  }

  std::unique_ptr<RecordedWriter> writer_;
};

TEST_F(RecordedNewsTest, AllThatAVisitWouldFindIsNewsAndThenNoMore) {
  EXPECT_TRUE(writer_->HasNews());  // of one that was never visited
  Visit();
  // The first look at the directory that workers come into.
  Visit();
  EXPECT_FALSE(writer_->HasNews());
  EXPECT_FALSE(writer_->HasNews());

  using spool::WriterHeader;
  const struct {
    const char* name;
    std::function<void()> happens;
  } rows[] = {
      {"an event", [this] { Push(0, Scope(1, 2)); }},
      {"a drop",
       [this] { PutNumber<std::uint64_t>("ring-0", offsetof(spool::RingHeader, dropped), 3); }},
      {"a step ended", [this] { PutHeader(offsetof(WriterHeader, last_step), 7); }},
      {"no ring to be had", [this] { PutHeader(offsetof(WriterHeader, dropped_no_ring), 2); }},
      {"no name to be had", [this] { PutHeader(offsetof(WriterHeader, dropped_no_name), 2); }},
      {"a thread came",
       [this] {
         MakeRing(1, 64, 1);
         CountRings(2);
       }},
      {"a thread ended", [this] { SetState(1, spool::kRingEnded); }},
      {"a worker came",
       [this] {
         fs::create_directory(path_ / "w0-0");
         fs::remove(path_ / "w0-0");
       }},
      {"closed",
       [this] {
         PutNumber<std::uint32_t>("header", offsetof(WriterHeader, state), spool::kWriterClosed);
       }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    row.happens();
    EXPECT_TRUE(writer_->HasNews());
    EXPECT_TRUE(writer_->HasNews());  // until it was looked at
    Visit();
    // What was done with is unlinked: the directory changed.
    Age();
    Visit();
    EXPECT_FALSE(writer_->HasNews());
  }
}

// It says nothing in any file: its lock is gone.
TEST_F(RecordedNewsTest, ADeathIsNews) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int lock = open((path_ / "lock").c_str(), O_RDWR);
    struct flock byte {};
    byte.l_type = F_WRLCK;
    byte.l_len = 1;
    if (fcntl(lock, F_SETLK, &byte) != 0 || write(pipe_ends[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char there = 0;
  ASSERT_EQ(read(pipe_ends[0], &there, 1), 1);
  Visit();
  Visit();
  EXPECT_FALSE(writer_->HasNews());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(writer_->HasNews());
  Visit();
  EXPECT_FALSE(writer_->HasNews());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(RecordedNewsTest, AHeaderThatIsCutShortIsNews) {
  Visit();
  Visit();
  ASSERT_FALSE(writer_->HasNews());
  fs::resize_file(path_ / "header", 16);
  EXPECT_TRUE(writer_->HasNews());
}

}  // namespace
}  // namespace stepwell::agent
