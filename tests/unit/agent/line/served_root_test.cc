// More writers than places: an agent that found hundreds of runs which no master takes.
#include "client/agent/served_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "tests/unit/agent/recorded_directory.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class ServedRootTest : public ::testing::Test {
 protected:
  struct Writer {
    RecordedDirectory files;
    fs::path path;
    int lock = -1;
  };

  void SetUp() override {
    char pattern[] = "/tmp/stepwell-root-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    // Nobody is asked: a stream starts with the visit of samplers.
    options_.server = "127.0.0.1:1";
    options_.auto_sampling = false;
    ServedRoot::Place place = {FileDescriptor(open(pattern, O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
    place.writer_count_max = 2;
    root_ = std::make_unique<ServedRoot>(options_, std::move(place), AgentFace{"host", "boot", "1"},
                                         clock_, ServedRoot::Callbacks());
  }
  void TearDown() override {
    root_.reset();
    for (const auto& writer : writers_) close(writer->lock);
    fs::remove_all(path_);
  }

  enum class Life { kDead, kLiving };
  // One event in its ring.
  Writer& Make(Life life) {
    WriterIdentity identity;
    identity.writer = Uuid::Random();
    identity.trial = "t";
    auto writer = std::make_unique<Writer>();
    writer->path = path_ / identity.writer.ToText();
    fs::create_directory(writer->path);
    writer->lock = open((writer->path / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    if (life == Life::kLiving) {
      EXPECT_EQ(fcntl(writer->lock, F_OFD_SETLK, &lock), 0);
    }
    writer->files.Make(writer->path);
    writer->files.MakeRing(0, 16, 0);
    writer->files.Push(0, RecordedDirectory::Scope(1, 2, 0));
    const FileDescriptor root(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_TRUE(MakeWriterDirectory(root.get(), identity).ok());
    writers_.push_back(std::move(writer));
    return *writers_.back();
  }
  void Visit(int count) {
    for (int i = 0; i < count; ++i) {
      root_->VisitWriters();
      clock_.Advance(absl::Milliseconds(100));
    }
  }
  static bool IsSpooled(const Writer& writer) {
    std::error_code none;
    return fs::exists(writer.path / "spool/0/0000000001.seg", none) &&
           !fs::exists(writer.path / "ring-0", none);
  }

  fs::path path_;
  AgentOptions options_;
  FakeClock clock_;
  std::unique_ptr<ServedRoot> root_;
  std::vector<std::unique_ptr<Writer>> writers_;
};

TEST_F(ServedRootTest, AllDeadOnesAreDrainedThoughFewHavePlaces) {
  for (int i = 0; i < 7; ++i) Make(Life::kDead);
  Visit(30);
  for (const auto& writer : writers_) EXPECT_TRUE(IsSpooled(*writer)) << writer->path;
  // None is forgotten: a master may come.
  const AgentLife::Facts facts = root_->facts();
  EXPECT_FALSE(facts.all_done);
  EXPECT_FALSE(facts.any_live);
}

TEST_F(ServedRootTest, ALivingOneHasAPlaceAtOnceAndKeepsIt) {
  for (int i = 0; i < 7; ++i) Make(Life::kDead);
  Visit(30);
  Writer& living = Make(Life::kLiving);
  Visit(3);
  EXPECT_EQ(living.files.Tail(0), 1u);
  // Others change places meanwhile.
  Visit(1500);
  EXPECT_TRUE(root_->facts().any_live);
  living.files.Push(0, RecordedDirectory::Scope(3, 4, 0));
  Visit(2);
  EXPECT_EQ(living.files.Tail(0), 2u);
}

// Changing places is no progress: the agent leaves when no master comes.
TEST_F(ServedRootTest, ChangingPlacesIsNoProgress) {
  for (int i = 0; i < 5; ++i) Make(Life::kDead);
  Visit(30);
  const std::uint64_t progress = root_->facts().progress;
  Visit(2000);
  EXPECT_EQ(root_->facts().progress, progress);
}

// Who rests looks after a writer twice a second, not ten times.
TEST_F(ServedRootTest, RestsOnlyWhileNobodyRecordsAndNothingWaitsForAMaster) {
  Visit(1);
  EXPECT_TRUE(root_->may_rest());
  Writer& writer = Make(Life::kLiving);
  root_->OnArrival();
  EXPECT_TRUE(root_->LookInHurry());
  EXPECT_FALSE(root_->may_rest()) << "it came and is not served yet";
  Visit(2);
  EXPECT_FALSE(root_->may_rest()) << "it records";
  close(std::exchange(writer.lock, -1));
  Visit(3);
  EXPECT_FALSE(root_->may_rest()) << "it is gone, and no master has what it recorded";
}

}  // namespace
}  // namespace stepwell::agent
