// A writer that must be succeeded: its sequences are known better by the master than by its spool.
#include "client/agent/served_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <filesystem>
#include <functional>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tests/unit/agent/sync_hooks.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kFrames = 12;
constexpr char kChildVariable[] = "STEPWELL_TEST_SUCCESSOR_DIR";

class ServedWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-served-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    identity_.writer = Uuid::Random();
    identity_.trial = "t";
  }
  void TearDown() override { fs::remove_all(path_); }

  std::unique_ptr<ServedWriter> Open(const Spool::Options& options = {}) {
    auto served = ServedWriter::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)),
                                     identity_, {sender_, clock_, AgentFace(), options});
    EXPECT_TRUE(served.ok()) << served.status();
    return *std::move(served);
  }
  // Frames of one tick each: value = its number.
  static void Seal(ServedWriter& served, int first, int last) {
    const std::uint32_t ref =
        served.catalog().Ref({TickGroupKind::kCadence, 1}, {"g", "n", {}, ""});
    for (int number = first; number <= last; ++number) {
      const RefValue tick[] = {{ref, static_cast<double>(number)}};
      served.builder().AddTick(served.catalog().definition(ref).tick_group(), number, -1, tick);
      ASSERT_TRUE(served.Seal(Checkpoint()).ok());
    }
  }
  // What the agent says until it has no more to say. Opens are answered: the first writer is known
  // to be far ahead, others are new. Chunks are acked.
  void Talk() {
    while (auto said = sender_.Next(clock_.Monotonic())) {
      pb::StreamChunksResponse answer;
      if (said->has_open()) {
        const std::string& writer = said->open().writer();
        if (first_writer_.empty()) first_writer_ = writer;
        answer.mutable_opened()->set_writer(writer);
        answer.mutable_opened()->set_committed_sequence(writer == first_writer_ ? first_committed_
                                                                                : 0);
        answer.mutable_opened()->set_credit_bytes(1 << 20);
      } else if (said->has_chunk()) {
        chunks_.push_back(said->chunk());
        answer.mutable_ack()->set_writer(said->chunk().writer());
        answer.mutable_ack()->set_committed_sequence(said->chunk().sequence());
        answer.mutable_ack()->set_credit_bytes(1 << 20);
      } else if (said->has_gap()) {
        gaps_.push_back(said->gap());
        continue;
      } else {
        continue;
      }
      sender_.OnMessage(answer, clock_.Monotonic());
    }
  }
  std::vector<double> Values() const {
    std::vector<double> values;
    for (const pb::Chunk& chunk : chunks_) {
      EXPECT_NE(chunk.writer(), first_writer_);
      pb::ChunkBody body;
      EXPECT_TRUE(body.ParseFromString(chunk.body()));
      for (const pb::Column& column : body.tables(0).columns()) {
        for (const std::int64_t integer : column.integers())
          values.push_back(static_cast<double>(integer));
        for (const double value : column.doubles()) values.push_back(value);
      }
    }
    return values;
  }
  static std::vector<double> Numbers(int first, int last) {
    std::vector<double> numbers;
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    return numbers;
  }
  // Seals, is told by the master that it knows better, and makes its successor.
  void Retire() {
    auto served = Open();
    Seal(*served, 1, kFrames);
    sender_.OnConnected();
    Talk();
    served->Tend();
  }

  // As each visit does.
  void SyncIfDue(ServedWriter& served) { served.TendSync(clock_.Monotonic()); }

  std::string path_;
  WriterIdentity identity_;
  FakeClock clock_;
  Sender sender_;
  std::string first_writer_;
  std::uint64_t first_committed_ = 1000;
  std::vector<pb::Chunk> chunks_;
  std::vector<pb::GapRange> gaps_;
};

TEST_F(ServedWriterTest, AgentRule02_FramesAreOnTheDiskWithinHalfASecond) {
  auto served = Open();
  Seal(*served, 1, 1);
  clock_.Advance(absl::Milliseconds(500));
  SyncIfDue(*served);
  const int before = fdatasync_count;
  Seal(*served, 2, 2);
  // The next visit, 100 ms later, would still be in time.
  clock_.Advance(absl::Milliseconds(400));
  SyncIfDue(*served);
  EXPECT_EQ(fdatasync_count, before);
  // This visit, however exactly it keeps its time, is the last one that is.
  clock_.Advance(absl::Milliseconds(99));
  SyncIfDue(*served);
  EXPECT_EQ(fdatasync_count, before + 1);
  clock_.Advance(absl::Seconds(1));
  SyncIfDue(*served);
  EXPECT_EQ(fdatasync_count, before + 1) << "nothing new";
}

TEST_F(ServedWriterTest, AgentRule02_WhatTheMasterAckedIsSyncedLater) {
  first_writer_ = "nobody";
  auto served = Open();
  sender_.OnConnected();
  const int before = fdatasync_count;
  // Each second a frame, acked at once.
  for (int second = 0; second < 5; ++second) {
    Seal(*served, second + 1, second + 1);
    Talk();
    for (int visit = 0; visit < 9; ++visit) {
      clock_.Advance(absl::Milliseconds(100));
      SyncIfDue(*served);
    }
    EXPECT_EQ(fdatasync_count, before) << second;
    clock_.Advance(absl::Milliseconds(100));
  }
  SyncIfDue(*served);
  EXPECT_EQ(fdatasync_count, before + 1);
}

TEST_F(ServedWriterTest, AgentRule02_WithSyncBeforeSendNothingGoesOutThatIsNotOnTheDisk) {
  first_writer_ = "nobody";
  Spool::Options options;
  options.sync_before_send = true;
  auto served = Open(options);
  sender_.OnConnected();
  Seal(*served, 1, 1);
  Talk();
  EXPECT_THAT(chunks_, SizeIs(1)) << "synced at once";
  fdatasync_fails = true;
  Seal(*served, 2, 2);
  Talk();
  EXPECT_THAT(chunks_, SizeIs(1));
  // It is tried again, as often as it takes.
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Milliseconds(500));
    const int before = fdatasync_count;
    SyncIfDue(*served);
    EXPECT_EQ(fdatasync_count, before + 1);
    Talk();
    EXPECT_THAT(chunks_, SizeIs(1));
  }
  fdatasync_fails = false;
  clock_.Advance(absl::Milliseconds(500));
  SyncIfDue(*served);
  Talk();
  EXPECT_THAT(chunks_, SizeIs(2));
}

TEST_F(ServedWriterTest, AgentRule03_WhatNoMasterCanHaveMovesToTheSuccessor) {
  auto served = Open();
  Seal(*served, 1, kFrames);
  sender_.OnConnected();
  Talk();
  EXPECT_THAT(chunks_, IsEmpty());
  served->Tend();
  Talk();
  EXPECT_EQ(Values(), Numbers(1, kFrames));
  ASSERT_THAT(gaps_, SizeIs(1));
  EXPECT_EQ(gaps_[0].cause(), pb::GAP_CAUSE_SPOOL_LOST);
  Seal(*served, kFrames + 1, kFrames + 3);
  Talk();
  EXPECT_EQ(Values(), Numbers(1, kFrames + 3));
}

// A spool that was set back to its fourth frame, and that fills up before the master says where it is: no frame of it is
// left to be compared.
TEST_F(ServedWriterTest, AgentRule03_WhatWasGivenUpUnderSequencesThatTheMasterHasIsTold) {
  constexpr int kKept = 4;
  constexpr int kLast = 60;
  first_committed_ = kKept + 4;
  Spool::Options options;
  options.bytes_max = 3 << 10;
  options.segment_bytes_max = 1 << 10;
  auto served = Open(options);
  Seal(*served, 1, kKept);
  served = nullptr;
  served = Open(options);
  Seal(*served, kKept + 1, kLast);
  served->Tend();
  sender_.OnConnected();
  Talk();
  EXPECT_THAT(chunks_, IsEmpty());
  served->Tend();
  Talk();
  std::uint64_t given_up = 0;
  for (const pb::GapRange& gap : gaps_) {
    if (gap.cause() == pb::GAP_CAUSE_SPOOL_FULL) given_up += gap.sample_count();
  }
  EXPECT_GT(given_up, first_committed_) << "the master's last is none of those that are held";
  // What was sealed before may be the master's.
  EXPECT_EQ(given_up + chunks_.size(), kLast);
  EXPECT_EQ(Values(), Numbers(static_cast<int>(given_up) + 1, kLast));
}

// Of a copy, or of rings from before a power loss: whoever served them before may have sealed the same.
TEST_F(ServedWriterTest, AgentRule03_WhatAnotherAgentMayHaveSealedMovesToNoSuccessor) {
  auto served = Open();
  served->NoteLife(false);
  Seal(*served, 1, kFrames);
  EXPECT_FALSE(served->gives_up_rings());
  sender_.OnConnected();
  Talk();
  served->Tend();
  EXPECT_TRUE(served->gives_up_rings());
  Talk();
  EXPECT_THAT(Values(), IsEmpty());
  ASSERT_THAT(gaps_, SizeIs(1));
  EXPECT_EQ(gaps_[0].cause(), pb::GAP_CAUSE_SPOOL_LOST);
  EXPECT_EQ(gaps_[0].sample_count(), kFrames);
  EXPECT_EQ(gaps_[0].first_time_us(), 1);
  EXPECT_EQ(gaps_[0].last_time_us(), kFrames);
  // From then on what is sealed tells the rest.
  Seal(*served, kFrames + 1, kFrames + 1);
  Talk();
  EXPECT_EQ(Values(), Numbers(kFrames + 1, kFrames + 1));
  served = nullptr;
  served = Open();
  served->NoteLife(false);
  EXPECT_TRUE(served->gives_up_rings()) << "the next agent";
  served->NoteLife(true);
  EXPECT_FALSE(served->gives_up_rings());
}

// A power loss must not leave a successor whose frames the master has, and which the disk does not
// know: its frames would be sent again under another id.
TEST_F(ServedWriterTest, AgentRule03_ASuccessorSpeaksOnlyOnceItsNameIsOnTheDisk) {
  auto served = Open();
  Seal(*served, 1, kFrames);
  sender_.OnConnected();
  Talk();
  const absl::Cleanup unhook = [] { fsync_hook = nullptr; };
  const std::string root = path_ + "/spool";
  int tried = 0;
  bool named = false;
  fsync_hook = [&](const std::string& path) {
    if (path != root) return 0;
    ++tried;
    named = fs::exists(root + "/1");
    errno = EIO;
    return -1;
  };
  served->Tend();
  EXPECT_EQ(tried, 1);
  EXPECT_TRUE(named);
  EXPECT_FALSE(fs::exists(root + "/1"));
  Talk();
  EXPECT_THAT(chunks_, IsEmpty());
  // What comes meanwhile moves too.
  Seal(*served, kFrames + 1, kFrames + 2);
  fsync_hook = nullptr;
  clock_.Advance(absl::Minutes(1));
  served->Tend();
  Talk();
  EXPECT_EQ(Values(), Numbers(1, kFrames + 2));
}

// The agent's loop serves other writers meanwhile, and this one goes on recording.
TEST_F(ServedWriterTest, ALargeBacklogMovesInParts) {
  auto served = Open();
  constexpr int kTicks = 30000;
  constexpr int kLargeFrames = 60;
  const auto seal_large = [&](int number) {
    const std::uint32_t ref =
        served->catalog().Ref({TickGroupKind::kCadence, 1}, {"g", "n", {}, ""});
    const std::uint32_t tick_group = served->catalog().definition(ref).tick_group();
    for (int i = 0; i < kTicks; ++i) {
      const RefValue tick[] = {{ref, number + i / 1e5}};  // no integers
      served->builder().AddTick(tick_group, number * kTicks + i, -1, tick);
    }
    ASSERT_TRUE(served->Seal(Checkpoint()).ok());
  };
  for (int number = 0; number < kLargeFrames; ++number) seal_large(number);
  sender_.OnConnected();
  Talk();
  served->Tend();
  EXPECT_TRUE(fs::exists(path_ + "/spool/1.draft"));
  EXPECT_FALSE(fs::exists(path_ + "/spool/1"));
  seal_large(kLargeFrames);
  // Under a ref that the draft does not know yet.
  const std::uint32_t late =
      served->catalog().Ref({TickGroupKind::kCadence, 1}, {"g", "late", {}, ""});
  const RefValue tick[] = {{late, 0.5}};
  served->builder().AddTick(served->catalog().definition(late).tick_group(), 1, -1, tick);
  ASSERT_TRUE(served->Seal(Checkpoint()).ok());
  int visits = 1;
  for (; visits < 100 && !fs::exists(path_ + "/spool/1"); ++visits) {
    clock_.Advance(absl::Milliseconds(100));
    served->Tend();
    Talk();
  }
  EXPECT_GE(visits, 3);
  EXPECT_LE(visits, 10);
  Talk();
  const std::vector<double> values = Values();
  ASSERT_EQ(values.size(), static_cast<std::size_t>((kLargeFrames + 1) * kTicks + 1));
  for (int number = 0; number <= kLargeFrames; ++number) {
    ASSERT_EQ(values[static_cast<std::size_t>(number * kTicks + 7)], number + 7 / 1e5);
  }
  // The next agent finds every definition.
  served = nullptr;
  served = Open();
  EXPECT_EQ(served->catalog().Ref({TickGroupKind::kCadence, 1}, {"g", "late", {}, ""}), late);
}

// A full disk lasts. The copy is not begun again at each of the agent's visits.
TEST_F(ServedWriterTest, ACopyThatFindsNoRoomIsTriedAgainNowAndThen) {
  signal(SIGXFSZ, SIG_IGN);
  auto served = Open();
  Seal(*served, 1, kFrames);
  sender_.OnConnected();
  Talk();
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(watch, (path_ + "/spool").c_str(), IN_CREATE | IN_DELETE), 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{64, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  for (int i = 0; i < 6000; ++i) {
    clock_.Advance(absl::Milliseconds(100));
    served->Tend();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  char events[64 << 10];
  const ssize_t bytes = read(watch, events, sizeof(events));
  close(watch);
  int drafts = 0;
  for (ssize_t at = 0; at < bytes;) {
    const auto* event = reinterpret_cast<const inotify_event*>(events + at);
    if ((event->mask & IN_CREATE) != 0 && std::string(event->name) == "1.draft") ++drafts;
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  EXPECT_GE(drafts, 10);
  EXPECT_LE(drafts, 120);
  EXPECT_FALSE(fs::exists(path_ + "/spool/1.draft"));
  // There is room again.
  clock_.Advance(absl::Minutes(1));
  served->Tend();
  Talk();
  EXPECT_EQ(Values(), Numbers(1, kFrames));
}

// Whose files they are may make any names: one spool must not be opened twice, nor a number be the
// last there is.
TEST_F(ServedWriterTest, FoldersThatNoAgentNamesSoAreNoSpools) {
  first_writer_ = "nobody";
  {
    auto served = Open();
    Seal(*served, 1, 2);
  }
  for (const char* name : {"00", "+0", " 0", "4294967295", "x"}) {
    ASSERT_TRUE(fs::create_directory(path_ + "/spool/" + name));
  }
  auto served = Open();
  sender_.OnConnected();
  Talk();
  EXPECT_EQ(Values(), Numbers(1, 2));
  for (const pb::Chunk& chunk : chunks_) EXPECT_EQ(chunk.writer(), identity_.writer.ToBytes());
}

// Each keeps a directory open, and a descriptor for each segment in it.
TEST_F(ServedWriterTest, OfMoreSpoolsThanAWriterIsRetiredToTheNewestAreServed) {
  for (int number = 0; number < 200; ++number) {
    fs::create_directories(absl::StrCat(path_, "/spool/", number));
  }
  const auto descriptor_count = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), {});
  };
  const std::ptrdiff_t before = descriptor_count();
  auto served = Open();
  EXPECT_LE(descriptor_count() - before, 20);
  Seal(*served, 1, 1);
  EXPECT_TRUE(fs::exists(path_ + "/spool/199/0000000001.seg"));
}

TEST_F(ServedWriterTest, AgentRule03_BehindTheLastNumberNoOtherSpoolBegins) {
  {
    auto served = Open();
    Seal(*served, 1, kFrames);
  }
  fs::rename(path_ + "/spool/0", path_ + "/spool/4294967294");
  auto served = Open();
  sender_.OnConnected();
  Talk();
  clock_.Advance(absl::Minutes(1));
  served->Tend();
  EXPECT_FALSE(fs::exists(path_ + "/spool/4294967295")) << "no start would find it";
  EXPECT_TRUE(fs::exists(path_ + "/spool/4294967294"));
}

// Not a test of its own: what the test below starts, to be killed.
TEST_F(ServedWriterTest, AgentThatRetiresAWriterAndDies) {
  const char* directory = getenv(kChildVariable);
  if (directory == nullptr) return;
  fs::remove_all(path_);
  path_ = directory;
  Retire();
  _exit(0);
}

std::string RunUntilFailpoint(const std::string& directory, int append) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(kChildVariable, directory.c_str(), 1);
    setenv("STEPWELL_FAILPOINTS", absl::StrCat("spool_append=exit@", append).c_str(), 1);
    execl("/proc/self/exe", "child", "--gtest_brief=1",
          "--gtest_filter=ServedWriterTest.AgentThatRetiresAWriterAndDies", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "killed" : absl::StrCat("exit ", WEXITSTATUS(status));
}

TEST_F(ServedWriterTest, AgentRule03_AKillInTheMiddleOfTheCopyLosesAndDoublesNothing) {
  // A definition and the frames are appended first; behind them the successor's own.
  constexpr int kFirst = 1 + kFrames;
  int killed = 0;
  for (int append = kFirst; append <= kFirst + kFrames + 4; ++append) {
    SCOPED_TRACE(append);
    const std::string directory = absl::StrCat(path_, "/", append);
    ASSERT_TRUE(fs::create_directory(directory));
    const std::string end = RunUntilFailpoint(directory, append);
    ASSERT_THAT(end, ::testing::AnyOf("killed", "exit 0"));
    if (end == "killed") ++killed;
    const std::string own = std::exchange(path_, directory);
    {
      // The next agent, and the same master.
      sender_.OnDisconnected();
      first_writer_.clear();
      chunks_.clear();
      gaps_.clear();
      auto served = Open();
      sender_.OnConnected();
      Talk();
      served->Tend();
      clock_.Advance(absl::Minutes(2));
      served->Tend();
      Talk();
      EXPECT_EQ(Values(), Numbers(1, kFrames));
      EXPECT_THAT(gaps_, SizeIs(1));
    }
    path_ = own;
  }
  EXPECT_GT(killed, kFrames);
}

}  // namespace
}  // namespace stepwell::agent
