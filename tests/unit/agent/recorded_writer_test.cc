// A recorder's directory made by hand, so that each byte and each moment of a crash can be chosen.
#include "client/agent/recorded_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/unit/agent/recorded_directory.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using spool::Event;
using spool::EventKind;
using ::testing::ElementsAre;

class RecordedWriterTest : public ::testing::Test, protected RecordedDirectory {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-ring-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    std::ofstream(fs::path(pattern) / "lock");
    Make(pattern);
  }
  void TearDown() override { fs::remove_all(path_); }

  void MakeRing(std::uint32_t number, std::uint32_t capacity, std::uint32_t thread) {
    RecordedDirectory::MakeRing(number, capacity, thread);
    status_.own.ring_count = number + 1;
  }
  std::unique_ptr<RecordedWriter> Open(Checkpoint checkpoint = {}) {
    auto writer = RecordedWriter::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)),
                                       std::move(checkpoint));
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  static constexpr auto kMore = RecordedWriter::Ending::kMoreToCome;
  static constexpr auto kFinal = RecordedWriter::Ending::kFinal;

  WriterStatus status_;
};

TEST_F(RecordedWriterTest, AnOpenStepStaysInItsRing) {
  MakeRing(0, 64, 0);
  for (const Event& event : {Begin(0), Scope(1, 2), End(0, 10, 0), Scope(11, 2)}) Push(0, event);
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("0 step 0 b0 1:2/1"));
  const RecordedWriter::Progress progress = writer->TakeProgress();
  EXPECT_EQ(progress.checkpoint.rings.at(0).tail, 3u);
  EXPECT_EQ(Tail(0), 0u);  // nothing is freed before the frame is written
  writer->StoreTails(progress.checkpoint);
  EXPECT_EQ(Tail(0), 3u);
  // Another agent sees the open step again, and no ended one.
  writer = Open();
  Push(0, End(10, 10, 1));
  TextSink again;
  ASSERT_TRUE(writer->Drain(status_, kMore, again).ok());
  EXPECT_THAT(again.lines, ElementsAre("0 step 10 b1 1:2/1"));
}

// It makes no sample, and waits for its step as one would.
TEST_F(RecordedWriterTest, AnInstantComesThroughWithTheBatchOfItsStep) {
  MakeRing(0, 64, 0);
  for (const Event& event : {Begin(0), Instant(3), Instant(4, 2), Instant(5, 9)}) Push(0, event);
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("loss 3 n2 0-0")) << "the names of a series and of nothing";
  EXPECT_EQ(writer->TakeProgress().checkpoint.rings.at(0).tail, 1u);
  Push(0, End(0, 10, 7));
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("loss 3 n2 0-0", "0 instant 1 3 b7", "0 step 0 b7"));
  EXPECT_EQ(writer->TakeProgress().checkpoint.rings.at(0).tail, 5u);
}

// A process whose threads are short makes rings without end. Each is drained, unlinked and
// forgotten.
TEST_F(RecordedWriterTest, RingNumbersGoOnBeyondAnyCount) {
  constexpr std::uint32_t kFirst = 65'000;
  constexpr std::uint32_t kEnd = 67'000;
  auto writer = Open();
  Checkpoint known;
  std::uint32_t drained_count = 0;
  for (std::uint32_t number = kFirst; number < kEnd; ++number) {
    MakeRing(number, 64, number);
    Push(number, Scope(1, 2, 0));
    SetState(number, spool::kRingEnded);
    if (number % 100 != 99) continue;
    TextSink sink;
    ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
    EXPECT_TRUE(writer->drained());
    drained_count += static_cast<std::uint32_t>(sink.lines.size());
    const RecordedWriter::Progress progress = writer->TakeProgress();
    known.MergeFrom(progress.checkpoint);
    writer->StoreTails(progress.checkpoint);
  }
  EXPECT_EQ(drained_count, kEnd - kFirst);
  EXPECT_LE(known.rings.size(), 100u);
  EXPECT_FALSE(fs::exists(path_ / "ring-66999"));
  // The next agent finds nothing to do again.
  MakeRing(kEnd, 64, kEnd);
  Push(kEnd, Scope(1, 2, 0));
  writer = Open(known);
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kFinal, sink).ok());
  EXPECT_THAT(sink.lines, testing::SizeIs(1));
}

TEST_F(RecordedWriterTest, AgentRule02_AForgedCountOfRingsCostsNothing) {
  MakeRing(0, 64, 0);
  Push(0, Scope(1, 2, 0));
  status_.own.ring_count = 0xfffffffe;
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kFinal, sink).ok());
  EXPECT_TRUE(writer->drained());
  EXPECT_THAT(sink.lines, testing::SizeIs(1));
}

TEST_F(RecordedWriterTest, WhatADeadProcessHeldItselfIsTold) {
  const struct {
    const char* name;
    RecordedWriter::Ending ending;
    bool closed;
    std::uint64_t told;
  } rows[] = {
      {"it lives", kMore, false, 2}, {"it died", kFinal, false, 7}, {"closed", kFinal, true, 2}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, dropped_no_ring), 2);
    PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, early_count), 5);
    auto writer = Open();
    status_ = *writer->ReadStatus();
    status_.own.closed = row.closed;
    TextSink sink;
    ASSERT_TRUE(writer->Drain(status_, row.ending, sink).ok());
    EXPECT_EQ(writer->TakeProgress().checkpoint.no_ring_told, row.told);
    EXPECT_THAT(sink.lines, testing::SizeIs(1));
    // Once.
    ASSERT_TRUE(writer->Drain(status_, row.ending, sink).ok());
    EXPECT_THAT(sink.lines, testing::SizeIs(1));
  }
}

TEST_F(RecordedWriterTest, AgentRule02_GoesOnBehindAWrittenFrameWhoseTailWasNotStored) {
  MakeRing(0, 64, 0);
  for (const Event& event : {Begin(0), End(0, 10, 0), End(10, 10, 1)}) Push(0, event);
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  const Checkpoint written = writer->TakeProgress().checkpoint;
  writer = Open(written);  // died before StoreTails
  Push(0, End(20, 10, 2));
  TextSink rest;
  ASSERT_TRUE(writer->Drain(status_, kMore, rest).ok());
  EXPECT_THAT(rest.lines, ElementsAre("0 step 20 b2"));
}

// The last frame was damaged on the disk, or the directory was set back: the rings went on.
TEST_F(RecordedWriterTest, AgentRule02_EventsOfFramesThatTheSpoolLostAreToldOnce) {
  MakeRing(0, 64, 0);
  for (const Event& event : {Begin(0), End(0, 10, 0)}) Push(0, event);
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  Checkpoint kept = writer->TakeProgress().checkpoint;
  writer->StoreTails(kept);
  for (const Event& event : {End(10, 10, 1), End(20, 10, 2)}) Push(0, event);
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  writer->StoreTails(writer->TakeProgress().checkpoint);  // of a frame that goes
  writer = Open(kept);
  sink.lines.clear();
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("loss 5 n2 0-0"));
  kept.MergeFrom(writer->TakeProgress().checkpoint);
  EXPECT_EQ(kept.rings.at(0).tail, 4u);
  writer = Open(kept);
  sink.lines.clear();
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_TRUE(sink.lines.empty());
}

TEST_F(RecordedWriterTest, AStepGoesOnInTheRingThatSucceedsAFullOne) {
  MakeRing(0, 4, 0);
  for (const Event& event : {Begin(0), End(0, 5, 0), Scope(6, 1)}) Push(0, event);
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  SetState(0, spool::kRingSucceeded);
  MakeRing(1, 8, 0);
  Push(1, Scope(8, 1));
  Push(1, End(5, 10, 1));
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("0 step 0 b0", "0 step 5 b1 1:2/2"));
  writer->StoreTails(writer->TakeProgress().checkpoint);
  EXPECT_FALSE(fs::exists(path_ / "ring-0"));
  EXPECT_TRUE(fs::exists(path_ / "ring-1"));
  SetState(1, spool::kRingEnded);
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  writer->StoreTails(writer->TakeProgress().checkpoint);
  EXPECT_FALSE(fs::exists(path_ / "ring-1"));
}

TEST_F(RecordedWriterTest, AnUndecidedStepAtTheEndLiesOutside) {
  MakeRing(0, 64, 0);
  MakeRing(1, 64, 3);
  Push(0, Begin(0));
  Push(0, Scope(1, 2));
  Push(1, Scope(5, 6, 0));
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kFinal, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("0 once 1 1 2", "3 once 1 5 6"));
  EXPECT_TRUE(writer->drained());
}

TEST_F(RecordedWriterTest, AgentRule02_WhatFailsItsCheckIsSkippedAndCounted) {
  MakeRing(0, 16, 0);
  Push(0, Begin(0));
  Event unknown_name = Scope(1, 1);
  unknown_name.name = 99;
  Push(0, unknown_name);
  Event series_as_scope = Scope(1, 1);
  series_as_scope.name = 2;
  Push(0, series_as_scope);
  Event unknown_kind = Scope(1, 1);
  unknown_kind.kind = static_cast<EventKind>(77);
  Push(0, unknown_kind);
  Push(0, Scope(2, 3));
  PutNumber<std::uint32_t>("ring-0", spool::EventOffset(16, 4) + offsetof(Event, stamp), 12345);
  Push(0, Scope(4, 5));
  Push(0, End(0, 10, 0));
  auto writer = Open();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("0 step 0 b0 1:5/1", "loss 3 n4 0-0"));
}

// A user of a system agent may make a million of them.
TEST_F(RecordedWriterTest, RingsBeyondTheBoundAreDrainedLater) {
  for (std::uint32_t number = 0; number < 5; ++number) {
    MakeRing(number, 16, number);
    Push(number, Scope(1, 2, 0));
    SetState(number, spool::kRingEnded);
  }
  RingBudget budget(2);
  auto writer = *RecordedWriter::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)),
                                      {}, RingFolder(), budget);
  TextSink sink;
  for (const std::size_t told : {2u, 4u, 5u}) {
    ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
    EXPECT_EQ(sink.lines.size(), told);
    EXPECT_EQ(writer->drained(), told == 5);
    writer->StoreTails(writer->TakeProgress().checkpoint);
    EXPECT_EQ(budget.left(), 2u);
  }
}

TEST_F(RecordedWriterTest, FilesThatAreNoRingsAreToldOnceAMinute) {
  for (int number = 0; number < 20; ++number) {
    std::ofstream(path_ / ("ring-" + std::to_string(number))) << "no ring";
  }
  status_.own.ring_count = 20;
  auto writer = Open();
  TextSink sink;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  const std::string told = testing::internal::GetCapturedStderr();
  const std::size_t first = told.find("ring_refused");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(told.find("ring_refused", first + 1), std::string::npos) << told;
}

// Names are looked for again only where an event has one that is not known.
TEST_F(RecordedWriterTest, AgentRule02_ANameThatCameMeanwhileIsFound) {
  MakeRing(0, 16, 0);
  const std::uint64_t names_bytes = names_bytes_;
  PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, names_bytes), 0);
  auto writer = Open();
  TextSink sink;
  Push(0, Begin(0));
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, names_bytes), names_bytes);
  Push(0, Scope(4, 5));
  Push(0, End(0, 10, 0));
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("0 step 0 b0 1:5/1"));
}

TEST_F(RecordedWriterTest, AgentRule02_AForgedHeadOrTailDoesNoHarm) {
  MakeRing(0, 16, 0);
  Push(0, Begin(0));
  for (const std::uint64_t forged : {std::uint64_t{1} << 60, UINT64_MAX}) {
    PutNumber<std::uint64_t>("ring-0", offsetof(spool::RingHeader, head), forged);
    auto writer = Open();
    // One lap is looked at, however far the head is.
    TextSink sink;
    ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
    EXPECT_TRUE(writer->drained());
    EXPECT_THAT(sink.lines, ElementsAre("loss 3 n0 0-0", "loss 3 n16 0-0"));
    for (const std::uint64_t tail : {forged, forged - 5}) {
      PutNumber<std::uint64_t>("ring-0", offsetof(spool::RingHeader, tail), tail);
      writer = Open();
      ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
    }
    PutNumber<std::uint64_t>("ring-0", offsetof(spool::RingHeader, tail), 0);
  }
  fs::resize_file(path_ / "ring-0", 100);
  auto writer = Open();
  TextSink sink;
  EXPECT_TRUE(writer->Drain(status_, kMore, sink).ok());
  fs::resize_file(path_ / "header", 10);
  EXPECT_FALSE(writer->ReadStatus().ok());
}

TEST_F(RecordedWriterTest, DropsAreToldOnceAcrossAgents) {
  MakeRing(0, 16, 0);
  const auto drop = [&](std::uint64_t count, std::uint64_t first, std::uint64_t last) {
    PutNumber("ring-0", offsetof(spool::RingHeader, dropped), count);
    PutNumber("ring-0", offsetof(spool::RingHeader, dropped_first_ns), first);
    PutNumber("ring-0", offsetof(spool::RingHeader, dropped_last_ns), last);
  };
  drop(5, 100, 200);
  PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, dropped_no_name), 2);
  auto writer = Open();
  status_ = *writer->ReadStatus();
  TextSink sink;
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("loss 0 n5 100-200", "loss 2 n2 0-0"));
  Checkpoint written;
  written.MergeFrom(writer->TakeProgress().checkpoint);
  drop(8, 100, 300);
  sink.lines.clear();
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_THAT(sink.lines, ElementsAre("loss 0 n3 200-300"));
  written.MergeFrom(writer->TakeProgress().checkpoint);
  writer = Open(written);
  sink.lines.clear();
  ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
  EXPECT_TRUE(sink.lines.empty());
}

// Agents that die at any moment, rings so small that steps are folded: each sample comes out once.
TEST_F(RecordedWriterTest, AgentRule02_EachSampleComesOutOnceWhereverAgentsDie) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 40; ++round) {
    TearDown();
    SetUp();
    MakeRing(0, 16, 0);
    MakeRing(1, 16, 1);
    std::map<std::uint32_t, Lines> expected;
    StepAggregator plain[2];
    const NameTable no_names;
    std::uint64_t step_start[2] = {0, 0};
    std::uint64_t now = 1;
    std::int32_t batch = 0;
    // What a spool holds: samples and checkpoint are written together.
    Lines stored;
    Checkpoint spooled;
    auto writer = Open();
    const auto push = [&](std::uint32_t ring, const Event& event) {
      Push(ring, event);
      TextSink sink;
      sink.EnterThread({0, spool::kNoWorker, no_names}, ring);
      plain[ring].Add(event, sink);
      for (const std::string& line : sink.lines) expected[ring].push_back(line);
    };
    push(0, Begin(0));
    push(1, Begin(0));
    for (int turn = 0; turn < 400; ++turn) {
      const auto ring = static_cast<std::uint32_t>(random() % 2);
      ++now;
      switch (random() % 8) {
        case 0:
        case 1:
          if (Room(ring)) push(ring, Scope(now, random() % 9));
          break;
        case 2:
          if (Room(ring)) push(ring, Record(now, static_cast<double>(now)));
          break;
        case 3:
          if (Room(ring)) push(ring, Scope(now, 3, 0));
          break;
        case 4:
          if (!Room(ring)) break;
          push(ring, End(step_start[ring], now - step_start[ring], ++batch));
          step_start[ring] = now;
          break;
        default: {
          TextSink sink;
          ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
          const RecordedWriter::Progress progress = writer->TakeProgress();
          const std::uint64_t dies = random() % 6;
          if (dies == 0) {
            writer = Open(spooled);  // before the frame is written
            break;
          }
          if (sink.lines.empty() && !progress.urgent) break;
          stored.insert(stored.end(), sink.lines.begin(), sink.lines.end());
          spooled.MergeFrom(progress.checkpoint);
          if (dies == 1) {
            writer = Open(spooled);  // before the tails are stored
          } else {
            writer->StoreTails(progress.checkpoint);
          }
        }
      }
    }
    for (std::uint32_t ring = 0; ring < 2; ++ring) {
      if (!Room(ring)) {
        TextSink sink;
        ASSERT_TRUE(writer->Drain(status_, kMore, sink).ok());
        stored.insert(stored.end(), sink.lines.begin(), sink.lines.end());
        const Checkpoint checkpoint = writer->TakeProgress().checkpoint;
        spooled.MergeFrom(checkpoint);
        writer->StoreTails(checkpoint);
      }
      ASSERT_TRUE(Room(ring));
      push(ring, End(step_start[ring], now - step_start[ring], ++batch));
    }
    TextSink sink;
    ASSERT_TRUE(writer->Drain(status_, kFinal, sink).ok());
    stored.insert(stored.end(), sink.lines.begin(), sink.lines.end());
    // A fold lets what stands alone out before its step: the order may differ, nothing else.
    for (std::uint32_t ring = 0; ring < 2; ++ring) {
      Lines own;
      for (const std::string& line : stored) {
        if (line[0] == static_cast<char>('0' + ring)) own.push_back(line);
      }
      std::sort(own.begin(), own.end());
      std::sort(expected[ring].begin(), expected[ring].end());
      ASSERT_EQ(own, expected[ring]) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace stepwell::agent
