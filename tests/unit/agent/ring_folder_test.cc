// Rings in shared memory, as the agent finds and clears them.
#include "client/agent/ring_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/agent/recorded_directory.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

constexpr auto kFinal = RecordedWriter::Ending::kFinal;

class RingFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-folder-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    base_ = pattern;
    for (const fs::path& path : {writer_path(), ring_path(writer_)}) MakePrivate(path);
    WriteOwner(ring_path(writer_), writer_path());
    std::ofstream(writer_path() / "lock");
    recorded_.Make(writer_path());
    writer_directory_ = FileDescriptor(open(writer_path().c_str(), O_RDONLY | O_DIRECTORY));
    format_ = FileDescriptor(open((base_ / "f1").c_str(), O_RDONLY | O_DIRECTORY));
  }
  void TearDown() override { fs::remove_all(base_); }

  static void MakePrivate(const fs::path& path) {
    fs::create_directories(path);
    ASSERT_EQ(chmod(path.parent_path().c_str(), 0700), 0);
    ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  }
  // As the recorder of `writer` does.
  static void WriteOwner(const fs::path& rings, const fs::path& writer) {
    struct stat status {};
    (void)stat(writer.parent_path().c_str(), &status);
    std::ofstream(rings / "spool") << writer.string() << "\n"
                                   << status.st_dev << ":" << status.st_ino;
  }
  fs::path writer_path() const { return base_ / "f1" / writer_.ToText(); }
  fs::path home() const { return base_ / "shm"; }
  fs::path ring_path(const Uuid& writer) const { return home() / writer.ToText(); }
  RingFolder Open() const {
    return RingFolder::Open(ring_path(writer_), writer_, writer_directory_.get());
  }
  void MakeRings(const Uuid& writer, const fs::path& spool) {
    MakePrivate(ring_path(writer));
    WriteOwner(ring_path(writer), spool);
    MakePrivate(ring_path(writer) / "w0-0");
    std::ofstream(ring_path(writer) / "w0-0" / "ring-0") << "x";
  }
  // What a writer that died left, read by an agent that sees `folder`.
  Lines DrainDead(RingFolder folder, Checkpoint& checkpoint) {
    auto writer =
        RecordedWriter::Open(FileDescriptor(open(writer_path().c_str(), O_RDONLY | O_DIRECTORY)),
                             checkpoint, std::move(folder));
    EXPECT_TRUE(writer.ok()) << writer.status();
    TextSink sink;
    EXPECT_TRUE((*writer)->Drain(*(*writer)->ReadStatus(), kFinal, sink).ok());
    const RecordedWriter::Progress progress = (*writer)->TakeProgress();
    checkpoint.MergeFrom(progress.checkpoint);
    (*writer)->StoreTails(progress.checkpoint);
    (*writer)->workers().RemoveFinished();
    return sink.lines;
  }

  fs::path base_;
  const Uuid writer_ = Uuid::Random();
  RecordedDirectory recorded_;
  FileDescriptor writer_directory_;
  FileDescriptor format_;
};

using Recorded = RecordedDirectory;

TEST_F(RingFolderTest, AgentRule06_EachRingIsFoundWhereverItLies) {
  recorded_.MakeRing(0, 16, 0);  // beside the spool
  recorded_.ring_path = ring_path(writer_);
  recorded_.MakeRing(1, 16, 1);
  recorded_.Push(1, Recorded::Scope(1, 2, 0));
  recorded_.ring_path.clear();
  recorded_.Push(0, Recorded::Scope(3, 4, 0));
  Checkpoint checkpoint;
  EXPECT_THAT(DrainDead(Open(), checkpoint), ElementsAre("0 once 1 3 4", "1 once 1 1 2"));
  EXPECT_FALSE(fs::exists(writer_path() / "ring-0"));
  EXPECT_FALSE(fs::exists(ring_path(writer_) / "ring-1"));
}

TEST_F(RingFolderTest, AgentRule06_AWorkersRingsLieInAFolderOfItsName) {
  Recorded worker;
  MakePrivate(writer_path() / "w2-0");
  MakePrivate(ring_path(writer_) / "w2-0");
  worker.Make(writer_path() / "w2-0", 1);
  worker.ring_path = ring_path(writer_) / "w2-0";
  worker.MakeRing(0, 16, 0);
  worker.Push(0, Recorded::Scope(1, 2, 0));
  Checkpoint checkpoint;
  EXPECT_THAT(DrainDead(Open(), checkpoint), ElementsAre("w2/0 once 1 1 2"));
  EXPECT_FALSE(fs::exists(ring_path(writer_) / "w2-0"));
  EXPECT_FALSE(fs::exists(writer_path() / "w2-0"));
}

TEST_F(RingFolderTest, AgentRule06_RingsThatCannotBeSeenAreToldOnceAtTheEnd) {
  recorded_.MakeRing(0, 16, 0);
  recorded_.Push(0, Recorded::Scope(3, 4, 0));
  recorded_.ring_path = ring_path(writer_);
  recorded_.MakeRing(1, 16, 1);
  fs::remove_all(ring_path(writer_));
  const RingFolder folder = Open();
  EXPECT_TRUE(folder.hidden());
  Checkpoint checkpoint;
  EXPECT_THAT(DrainDead(Open(), checkpoint), ElementsAre("0 once 1 3 4", "loss 4 n0 0-0"));
  EXPECT_THAT(DrainDead(Open(), checkpoint), ElementsAre());
}

TEST_F(RingFolderTest, AgentRule06_WhatAnotherMayWriteToIsNotBelieved) {
  const auto is_visible = [&] { return Open().visible(); };
  EXPECT_TRUE(is_visible());
  ASSERT_EQ(chmod(ring_path(writer_).c_str(), 0750), 0);
  EXPECT_FALSE(is_visible());
  ASSERT_EQ(chmod(ring_path(writer_).c_str(), 0700), 0);
  fs::rename(ring_path(writer_), home() / "elsewhere");
  fs::create_directory_symlink(home() / "elsewhere", ring_path(writer_));
  EXPECT_FALSE(is_visible());
  fs::remove(ring_path(writer_));
  fs::rename(home() / "elsewhere", ring_path(writer_));
  EXPECT_TRUE(is_visible());
  if (geteuid() == 0) {
    ASSERT_EQ(chown(ring_path(writer_).c_str(), 65534, 65534), 0);
    EXPECT_FALSE(is_visible());
  }
  const struct {
    const char* name;
    std::string path;
    bool is_path;
  } rows[] = {{"good", "/dev/shm/" + writer_.ToText(), true},
              {"relative", "shm/" + writer_.ToText(), false},
              {"another's", "/dev/shm/" + Uuid::Random().ToText(), false},
              {"no component", "/dev/shm/x" + writer_.ToText(), false},
              {"long", "/" + std::string(5000, 'x') + "/" + writer_.ToText(), false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(IsRingPath(row.path, writer_), row.is_path);
  }
}

// An upload of a copy, beside the agent that serves the original.
TEST_F(RingFolderTest, AgentRule06_ACopyOfASpoolDoesNotTakeTheRingsOfTheOriginal) {
  MakePrivate(base_ / "copy" / "f1" / writer_.ToText());
  const fs::path copy = base_ / "copy" / "f1" / writer_.ToText();
  std::ofstream(copy / "writer.json")
      << R"({"format": 1, "writer": ")" << writer_.ToText() << R"(", "trial": "t", "rings": ")"
      << ring_path(writer_).string() << "\"}";
  const FileDescriptor copied(open(copy.c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(RingFolder::Open(ring_path(writer_), writer_, copied.get()).hidden());
  const FileDescriptor format(open(copy.parent_path().c_str(), O_RDONLY | O_DIRECTORY));
  RemoveWriter(format.get(), writer_.ToText());
  EXPECT_FALSE(fs::exists(copy));
  EXPECT_TRUE(Open().visible());
  // One that was moved is the original.
  fs::rename(base_ / "f1", base_ / "moved");
  EXPECT_TRUE(Open().visible());
}

TEST_F(RingFolderTest, AgentRule06_SweepsWhatNoWriterOfThisRootOwns) {
  const Uuid gone = Uuid::Random();
  const Uuid elsewhere = Uuid::Random();
  MakeRings(writer_, writer_path());
  MakeRings(gone, base_ / "f1" / gone.ToText());
  MakePrivate(base_ / "other" / "f1");
  MakeRings(elsewhere, base_ / "other" / "f1" / elsewhere.ToText());
  const Uuid unsaid = Uuid::Random();
  MakePrivate(ring_path(unsaid));
  // Another container's: its path is one of ours, its directory is not.
  const Uuid contained = Uuid::Random();
  MakeRings(contained, base_ / "f1" / contained.ToText());
  std::ofstream(ring_path(contained) / "spool")
      << (base_ / "f1" / contained.ToText()).string() << "\n7:7";
  EXPECT_EQ(SweepRings(home(), format_.get(), geteuid()), 1);
  EXPECT_FALSE(fs::exists(ring_path(gone)));
  for (const Uuid& kept : {writer_, elsewhere, unsaid, contained}) {
    EXPECT_TRUE(fs::exists(ring_path(kept))) << kept.ToText();
  }
  // Of another user, nothing is swept.
  fs::remove_all(writer_path());
  EXPECT_EQ(SweepRings(home(), format_.get(), geteuid() + 1), 0);
  EXPECT_EQ(SweepRings(home(), format_.get(), geteuid()), 1);
  EXPECT_EQ(SweepRings(base_ / "absent", format_.get(), geteuid()), 0);
}

TEST_F(RingFolderTest, AgentRule06_RingsGoWithTheirWriter) {
  MakeRings(writer_, writer_path());
  std::ofstream(writer_path() / "writer.json")
      << R"({"format": 1, "writer": ")" << writer_.ToText() << R"(", "trial": "t", "rings": ")"
      << ring_path(writer_).string() << "\"}";
  RemoveWriter(format_.get(), writer_.ToText());
  EXPECT_FALSE(fs::exists(writer_path()));
  EXPECT_FALSE(fs::exists(ring_path(writer_)));
  EXPECT_TRUE(fs::exists(home()));
}

}  // namespace
}  // namespace stepwell::agent
