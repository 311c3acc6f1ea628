// Forked workers of a writer, as an agent sees their directories and their lock bytes.
#include "client/agent/worker_rings.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <random>
#include <set>

#include "client/agent/chunk_builder.h"
#include "client/agent/recorded_samples.h"
#include "tests/unit/agent/recorded_directory.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr auto kMore = RecordedWriter::Ending::kMoreToCome;
constexpr auto kFinal = RecordedWriter::Ending::kFinal;

class WorkerRingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-worker-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    lock_ = open((path_ / "lock").c_str(), O_RDWR | O_CREAT, 0600);
    Hold(spool::kProcessLockByte, true);
    parent_.Make(path_);
    parent_.MakeRing(0, 16, 0);
  }
  void TearDown() override {
    close(lock_);
    fs::remove_all(path_);
  }

  // An open file description's lock: F_GETLK of this same process sees it as another's.
  void Hold(std::int64_t byte, bool is_held) const {
    struct flock lock {};
    lock.l_type = is_held ? F_WRLCK : F_UNLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    ASSERT_EQ(fcntl(lock_, F_OFD_SETLK, &lock), 0);
  }
  struct Child {
    std::uint32_t index = 0;
    std::string name;
    RecordedDirectory files;
  };
  // As the recorder does it: the lowest free byte, a directory above all of that index.
  std::unique_ptr<Child> Fork(std::set<std::uint32_t>& taken) {
    auto child = std::make_unique<Child>();
    while (taken.contains(child->index)) ++child->index;
    taken.insert(child->index);
    Hold(spool::WorkerLockByte(child->index), true);
    int again = 0;
    const std::string prefix = absl::StrCat("w", child->index, "-");
    for (const std::string& name : Directories()) {
      if (name.starts_with(prefix)) again = std::max(again, std::stoi(name.substr(3)) + 1);
    }
    child->name = absl::StrCat(prefix, again);
    EXPECT_TRUE(fs::create_directory(path_ / child->name));
    child->files.Make(path_ / child->name, ++opened_ns_);
    child->files.MakeRing(0, 16, 0);
    return child;
  }
  std::unique_ptr<Child> Fork() {
    std::set<std::uint32_t> none;
    return Fork(none);
  }
  void Die(const Child& child) { Hold(spool::WorkerLockByte(child.index), false); }
  std::unique_ptr<RecordedWriter> Open(Checkpoint checkpoint = {}) {
    auto writer = RecordedWriter::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)),
                                       std::move(checkpoint));
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }
  WriterStatus Status(RecordedWriter& writer) {
    const absl::StatusOr<WriterStatus> status = writer.ReadStatus();
    EXPECT_TRUE(status.ok());
    return *status;
  }
  // A visit whose frame is written.
  Lines Visit(RecordedWriter& writer) {
    TextSink sink;
    const WriterStatus status = Status(writer);
    EXPECT_TRUE(writer.Drain(status, status.alive ? kMore : kFinal, sink).ok());
    const Checkpoint checkpoint = writer.TakeProgress().checkpoint;
    spooled_.MergeFrom(checkpoint);
    writer.StoreTails(checkpoint);
    return sink.lines;
  }
  std::vector<std::string> Directories() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.is_directory()) names.push_back(entry.path().filename());
    }
    return names;
  }

  fs::path path_;
  int lock_ = -1;
  RecordedDirectory parent_;
  std::uint64_t opened_ns_ = 0;
  Checkpoint spooled_;
};

using Recorded = RecordedDirectory;

TEST_F(WorkerRingsTest, AgentRule11_AWorkersEventsComeWithItsIndex) {
  auto writer = Open();
  const auto child = Fork();
  child->files.Push(0, Recorded::Scope(1, 2, 0));
  parent_.Push(0, Recorded::Scope(3, 4, 0));
  EXPECT_THAT(Visit(*writer), ElementsAre("0 once 1 3 4", "w0/0 once 1 1 2"));
  // In a later epoch, without a change of the directory.
  child->files.Push(0, Recorded::Scope(5, 6, 0));
  EXPECT_THAT(Visit(*writer), ElementsAre("w0/0 once 1 5 6"));
}

TEST_F(WorkerRingsTest, AgentRule11_ADeadOneIsDrainedThenRemovedAndForgotten) {
  auto writer = Open();
  const auto child = Fork();
  child->files.Push(0, Recorded::Begin(1));
  child->files.Push(0, Recorded::Scope(1, 2));  // of a step that never ends
  EXPECT_THAT(Visit(*writer), IsEmpty());
  Die(*child);
  EXPECT_THAT(Visit(*writer), ElementsAre("w0/0 once 1 1 2"));
  EXPECT_EQ(spooled_.workers.size(), 1u);
  TextSink sink;
  ASSERT_TRUE(writer->Drain(Status(*writer), kMore, sink).ok());
  EXPECT_EQ(sink.left_count, 1);
  EXPECT_THAT(Directories(), IsEmpty());
  (void)Visit(*writer);
  EXPECT_THAT(spooled_.workers, IsEmpty());
}

// The byte is another's by then.
TEST_F(WorkerRingsTest, AgentRule11_AHigherDirectoryOfTheSameIndexMeansDeath) {
  auto writer = Open();
  const auto first = Fork();
  const auto second = Fork();
  ASSERT_EQ(second->name, "w0-1");
  first->files.Push(0, Recorded::Scope(1, 2, 0));
  second->files.Push(0, Recorded::Scope(3, 4, 0));
  EXPECT_THAT(Visit(*writer), ElementsAre("w0/0 once 1 1 2", "w0/0 once 1 3 4"));
  (void)Visit(*writer);
  EXPECT_THAT(Directories(), ElementsAre("w0-1"));
}

TEST_F(WorkerRingsTest, AgentRule11_WhatIsNotAWorkerYetWaitsAndGoesIfItNeverBecomesOne) {
  auto writer = Open();
  Hold(spool::WorkerLockByte(3), true);
  fs::create_directory(path_ / "w3-0");
  std::ofstream(path_ / "w3-0" / "header.draft") << "x";
  EXPECT_THAT(Visit(*writer), IsEmpty());
  EXPECT_FALSE(writer->workers().complete());
  EXPECT_THAT(Directories(), ElementsAre("w3-0"));
  Hold(spool::WorkerLockByte(3), false);
  (void)Visit(*writer);
  EXPECT_THAT(Directories(), IsEmpty());
}

TEST_F(WorkerRingsTest, AgentRule11_NamesThatAreNoWorkersAreLeftAlone) {
  const std::vector<std::string> names = {"w",       "w0",   "w-0",  "w0-",    "w00-0",
                                          "w1024-0", "w0-x", "x0-0", "w0-0-0", "w0-00"};
  for (const std::string& name : names) fs::create_directory(path_ / name);
  auto writer = Open();
  (void)Visit(*writer);
  EXPECT_TRUE(writer->workers().complete());
  EXPECT_THAT(Directories(), ::testing::UnorderedElementsAreArray(names));
}

TEST_F(WorkerRingsTest, AgentRule11_ADamagedOneIsToldAndStopsNoOther) {
  auto writer = Open();
  const auto broken = Fork();
  std::set<std::uint32_t> taken = {0};
  const auto whole = Fork(taken);
  (void)Visit(*writer);
  whole->files.Push(0, Recorded::Scope(1, 2, 0));
  fs::resize_file(path_ / broken->name / "header", 10);
  EXPECT_THAT(Visit(*writer), ElementsAre("loss 3 n0 0-0", "w1/0 once 1 1 2"));
  EXPECT_THAT(Visit(*writer), IsEmpty());
  Die(*broken);
  (void)Visit(*writer);
  (void)Visit(*writer);
  EXPECT_THAT(Directories(), ElementsAre(whole->name));
}

TEST_F(WorkerRingsTest, AgentRule11_AWriterLivesAsLongAsAnyOfItsProcesses) {
  auto writer = Open();
  const auto child = Fork();
  child->files.PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, last_step),
                                        spool::PackLastStep(7, 6));
  (void)Visit(*writer);
  EXPECT_EQ(Status(*writer).last_step, 0u);
  Hold(spool::kProcessLockByte, false);
  WriterStatus status = Status(*writer);
  EXPECT_FALSE(status.alive);
  EXPECT_TRUE(status.workers_alive);
  EXPECT_EQ(spool::BatchOfLastStep(status.last_step), 6);  // a daemon's steps are the trial's
  // It closes its recorder and ends: the trial did not die.
  child->files.PutNumber<std::uint32_t>("header", offsetof(spool::WriterHeader, state),
                                        spool::kWriterClosed);
  Die(*child);
  status = Status(*writer);
  EXPECT_FALSE(status.workers_alive);
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status, kFinal, sink).ok());
  EXPECT_TRUE(writer->drained());
  EXPECT_TRUE(writer->workers().complete());
  EXPECT_TRUE(writer->workers().ended_in_order());
}

TEST_F(WorkerRingsTest, AgentRule11_OneThatClosedIsToldWhenAllOfItIsAcked) {
  auto writer = Open();
  const auto child = Fork();
  child->files.Push(0, Recorded::Scope(1, 2, 0));
  const auto state = [&] {
    std::ifstream in(path_ / child->name / "header", std::ios::binary);
    in.seekg(offsetof(spool::WriterHeader, agent_state));
    std::uint32_t value = 0;
    in.read(reinterpret_cast<char*>(&value), sizeof(value));
    return value;
  };
  (void)Visit(*writer);
  EXPECT_EQ(state(), spool::kAgentServing);
  writer->workers().NoteSealed(5);
  EXPECT_FALSE(writer->workers().awaits_ack());
  child->files.PutNumber<std::uint32_t>("header", offsetof(spool::WriterHeader, state),
                                        spool::kWriterClosed);
  (void)Visit(*writer);
  writer->workers().NoteSealed(6);
  writer->workers().NoteSealed(7);  // others' samples
  EXPECT_TRUE(writer->workers().awaits_ack());
  writer->workers().TellStored(5, spool::kAgentAcked);
  EXPECT_EQ(state(), spool::kAgentServing);
  writer->workers().TellStored(6, spool::kAgentAcked);
  EXPECT_EQ(state(), spool::kAgentAcked);
}

TEST_F(WorkerRingsTest, AgentRule11_ControlReachesThoseThatComeLaterToo) {
  auto writer = Open();
  const auto control = [&](const std::string& name) {
    std::ifstream in(path_ / name / "header", std::ios::binary);
    in.seekg(offsetof(spool::WriterHeader, control));
    std::uint32_t value = 0;
    in.read(reinterpret_cast<char*>(&value), sizeof(value));
    return value;
  };
  const auto first = Fork();
  (void)Visit(*writer);
  writer->StoreControl(spool::kControlOff);
  EXPECT_EQ(control(first->name), spool::kControlOff);
  std::set<std::uint32_t> taken = {0};
  const auto second = Fork(taken);
  (void)Visit(*writer);
  EXPECT_EQ(control(second->name), spool::kControlOff);
}

// A series of each worker, be it forked anew a thousand times.
TEST_F(WorkerRingsTest, AgentRule11_SeriesCarryTheWorkerAndDoNotGrowWithForks) {
  SeriesCatalog catalog;
  ChunkBuilder builder(catalog);
  RecordedSamples samples(catalog, builder);
  auto writer = Open();
  for (int epoch = 0; epoch < 50; ++epoch) {
    const auto child = Fork();
    for (const auto& event : {Recorded::Begin(1), Recorded::Scope(1, 2), Recorded::End(0, 9, 1)}) {
      child->files.Push(0, event);
    }
    Die(*child);
    ASSERT_TRUE(writer->Drain(Status(*writer), kMore, samples).ok());
    const Checkpoint checkpoint = writer->TakeProgress().checkpoint;
    spooled_.MergeFrom(checkpoint);
    writer->StoreTails(checkpoint);
    EXPECT_LE(spooled_.workers.size(), 2u);
  }
  std::vector<std::string> names;
  for (const pb::Definition& series : catalog.definitions()) {
    names.push_back(
        absl::StrCat(series.name(), "/", series.labels().at("worker"), "/", series.tick_group()));
  }
  EXPECT_THAT(names, UnorderedElementsAre("step/0/1", "forward/0/1"));
}

// Indexes given again, deaths at any moment, agents that die before and after their frame: each
// sample comes out once.
TEST_F(WorkerRingsTest, AgentRule11_EachSampleComesOutOnceWhereverProcessesDie) {
  std::mt19937_64 random(TestSeed());
  std::set<std::uint32_t> taken;
  std::vector<std::unique_ptr<Child>> children;
  Lines expected;
  Lines stored;
  std::uint64_t now = 0;
  auto writer = Open();
  const auto visit = [&](bool may_die) {
    TextSink sink;
    ASSERT_TRUE(writer->Drain(Status(*writer), kMore, sink).ok());
    const RecordedWriter::Progress progress = writer->TakeProgress();
    const std::uint64_t dies = may_die ? random() % 6 : 5;
    if (dies == 0) {
      writer = Open(spooled_);  // before the frame is written
      return;
    }
    if (sink.lines.empty() && !progress.urgent) return;
    stored.insert(stored.end(), sink.lines.begin(), sink.lines.end());
    Checkpoint read_back;
    ASSERT_TRUE(Checkpoint::Decode(progress.checkpoint.Encode(), read_back));
    spooled_.MergeFrom(read_back);
    if (dies == 1) {
      writer = Open(spooled_);  // before the tails are stored
    } else {
      writer->StoreTails(progress.checkpoint);
    }
  };
  for (int turn = 0; turn < 3000; ++turn) {
    const std::uint64_t action = random() % 12;
    if (action == 0 && children.size() < 4) {
      children.push_back(Fork(taken));
    } else if (action == 1 && !children.empty()) {
      const std::size_t at = random() % children.size();
      Die(*children[at]);
      taken.erase(children[at]->index);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (action < 9 && !children.empty()) {
      auto& child = *children[random() % children.size()];
      if (!child.files.Room(0)) continue;
      child.files.Push(0, Recorded::Scope(++now, 3, 0));
      expected.push_back(absl::StrCat("w", child.index, "/0 once 1 ", now, " 3"));
    } else if (action >= 9) {
      visit(true);
    }
  }
  for (const auto& child : children) Die(*child);
  // A dead one is removed with the visit after its last frame, and told with the one after that.
  for (int i = 0; i < 4; ++i) visit(false);
  std::sort(expected.begin(), expected.end());
  std::sort(stored.begin(), stored.end());
  EXPECT_EQ(stored, expected);
  EXPECT_GT(expected.size(), 500u);
  EXPECT_THAT(Directories(), IsEmpty());
  (void)Visit(*writer);
  EXPECT_THAT(spooled_.workers, IsEmpty());
}

// A program that closes every descriptor lets go of its lock, and its recorder takes it again.
TEST_F(WorkerRingsTest, AgentRule04_ALockThatIsGoneForAMomentIsNoDeath) {
  parent_.PutNumber<std::uint32_t>("header", offsetof(spool::WriterHeader, pid),
                                   static_cast<std::uint32_t>(getpid()));
  const auto writer = Open();
  EXPECT_TRUE(Status(*writer).alive);
  Hold(spool::kProcessLockByte, false);
  EXPECT_TRUE(Status(*writer).alive);
  Hold(spool::kProcessLockByte, true);
  EXPECT_TRUE(Status(*writer).alive);
  // Not for ever; and not where there is no such process.
  Hold(spool::kProcessLockByte, false);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (Status(*writer).alive && std::chrono::steady_clock::now() < until) usleep(1000);
  EXPECT_FALSE(Status(*writer).alive);
  Hold(spool::kProcessLockByte, true);
  EXPECT_TRUE(Status(*writer).alive);
  parent_.PutNumber<std::uint32_t>("header", offsetof(spool::WriterHeader, pid), 0x7ffffff0);
  Hold(spool::kProcessLockByte, false);
  EXPECT_FALSE(Status(*writer).alive);
}

}  // namespace
}  // namespace stepwell::agent
