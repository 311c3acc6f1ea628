#include "client/agent/left_recording.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/agent/rank_trace.h"
#include "tests/unit/agent/no_room.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

constexpr std::int64_t kBase = 1'700'000'000'000'000'000;

// What rank 3 recorded of batches 8 to 12 in epochs 1 and 2, beside a worker that counts by itself.
class LeftRecordingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = ::testing::TempDir() + "left-recording-XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    folder_ = made;
    fs::create_directory(folder_ / "spool");
    auto spool = OpenAt(AT_FDCWD, folder_ / "spool", O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    outbox_.emplace(spool_.get());
    writer_.writer = Uuid::Random();
    writer_.trial = "t";
    writer_.rank = 3;
    writer_.opened_time_us = kBase / 1000;
    writer_.tracing = {.directory = folder_ / "traces", .uploads = true};
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Its agent lives until it is gone.
  std::unique_ptr<RankTrace> Record(int batch_count = 5) {
    auto trace = std::make_unique<RankTrace>(
        writer_, SpanTrace::Source{.machine = "node-a"},
        RankTrace::Notes{.begin = [this](const TraceJob& job) -> RankTrace::Forget {
          note_ = job;
          return [] {};
        }});
    for (int batch = 8; batch < 8 + batch_count; ++batch) {
      const std::int64_t begin_ns = kBase + 100 * batch;
      // A worker's thread without a number, one with one, and then the process itself.
      for (const std::uint32_t id : {0U, 50U, 41U}) {
        trace->EnterThread({.worker = id == 41 ? -1 : 0, .index = id == 0 ? 1U : 0U, .id = id});
        if (batch == 10) trace->AddValue("epoch", "", begin_ns, 2);
        if (batch == 8) trace->AddValue("epoch", "", begin_ns, 1);
        trace->AddStep(begin_ns, begin_ns + 100, id == 41 ? batch : 99);
      }
      trace->Flush();
    }
    return trace;
  }
  absl::StatusOr<TraceJob> Finish() {
    return FinishLeftRecording(note_, *outbox_, [] { return true; });
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& each : fs::directory_iterator(folder_ / "traces")) {
      names.push_back(each.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path folder_;
  FileDescriptor spool_;
  std::optional<TraceOutbox> outbox_;
  WriterIdentity writer_;
  TraceJob note_;
};

TEST_F(LeftRecordingTest, ItsOwnEventsTellItsName) {
  Record().reset();
  ASSERT_THAT(Names(), ElementsAre("recording-rank3-0.pftrace"));
  const auto whole = Finish();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(Names(), ElementsAre("ep2-ba13-rank3.pftrace"));
  EXPECT_EQ(whole->path, folder_ / "traces/ep2-ba13-rank3.pftrace");
  EXPECT_EQ(whole->epoch, 2);
  EXPECT_EQ(whole->first_batch, 8);
  EXPECT_EQ(whole->last_batch, 12);
  EXPECT_EQ(whole->writer.writer, writer_.writer);
}

TEST_F(LeftRecordingTest, OneThatIsCutHasWhatIsWhole) {
  Record().reset();
  const std::string path = note_.path;
  fs::resize_file(path, fs::file_size(path) - 3);
  const auto whole = Finish();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(Names(), ElementsAre("ep2-ba12-rank3.pftrace"));
}

TEST_F(LeftRecordingTest, OfAnAgentThatLivesItIsNotTaken) {
  const auto trace = Record();
  EXPECT_TRUE(absl::IsUnavailable(Finish().status())) << Finish().status();
  EXPECT_THAT(Names(), ElementsAre("recording-rank3-0.pftrace"));
  trace->Finish();
  EXPECT_TRUE(absl::IsNotFound(Finish().status())) << Finish().status();
  EXPECT_THAT(Names(), ElementsAre("ep2-ba13-rank3.pftrace"));
}

TEST_F(LeftRecordingTest, WhatHasTheNameAlreadyStays) {
  for (int life = 0; life < 2; ++life) {
    Record().reset();
    EXPECT_TRUE(Finish().ok());
  }
  EXPECT_THAT(Names(), ElementsAre("ep2-ba13-rank3.2.pftrace", "ep2-ba13-rank3.pftrace"));
}

// An agent that was killed between a link and the removal of the name that it had.
TEST_F(LeftRecordingTest, OneThatHasItsNameAlreadyLosesTheOther) {
  Record().reset();
  fs::create_hard_link(note_.path, folder_ / "traces/ep2-ba13-rank3.pftrace");
  EXPECT_TRUE(Finish().ok());
  EXPECT_THAT(Names(), ElementsAre("ep2-ba13-rank3.pftrace"));
}

// Whoever is killed before that leaves both names, and then it is one note all the same.
TEST_F(LeftRecordingTest, ItIsNotedBeforeItLosesItsOldName) {
  Record().reset();
  {
    const NoRoom none;
    EXPECT_TRUE(absl::IsFailedPrecondition(Finish().status())) << Finish().status();
  }
  EXPECT_THAT(Names(), ElementsAre("ep2-ba13-rank3.pftrace", "recording-rank3-0.pftrace"));
  EXPECT_TRUE(fs::is_empty(folder_ / "spool/traces")) << "nor a draft of a note";
  EXPECT_TRUE(Finish().ok());
  EXPECT_THAT(Names(), ElementsAre("ep2-ba13-rank3.pftrace"));
  fs::create_hard_link(folder_ / "traces/ep2-ba13-rank3.pftrace", note_.path);
  EXPECT_TRUE(Finish().ok());
  EXPECT_THAT(Names(), ElementsAre("ep2-ba13-rank3.pftrace"));
  ASSERT_THAT(*outbox_->Names(), ::testing::SizeIs(1));
  const auto left = outbox_->Read(outbox_->Names()->front());
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->path, folder_ / "traces/ep2-ba13-rank3.pftrace");
}

// Of a run whose file of that name is gone.
TEST_F(LeftRecordingTest, ANoteOfAnotherWriterIsNoneOfIt) {
  TraceJob other = {.writer = writer_, .path = folder_ / "traces/ep2-ba13-rank3.pftrace"};
  other.writer.writer = Uuid::Random();
  ASSERT_TRUE(outbox_->Leave(other).ok());
  Record().reset();
  EXPECT_TRUE(Finish().ok());
  EXPECT_THAT(*outbox_->Names(), ::testing::SizeIs(2));
}

TEST_F(LeftRecordingTest, ADirectoryThatIsNotThereIsNotAFileThatIsGone) {
  Record().reset();
  fs::rename(folder_ / "traces", folder_ / "away");
  EXPECT_TRUE(absl::IsAborted(Finish().status())) << Finish().status();
  fs::rename(folder_ / "away", folder_ / "traces");
  EXPECT_TRUE(Finish().ok());
}

TEST_F(LeftRecordingTest, ItIsOneOfThoseThatAreKept) {
  writer_.tracing.kept_max = 2;
  Record(3).reset();
  const TraceJob oldest = note_;
  for (const int batch_count : {4, 5}) {
    const auto trace = Record(batch_count);
    trace->Finish();
  }
  const auto now = fs::last_write_time(folder_ / "traces/ep2-ba13-rank3.pftrace");
  fs::last_write_time(oldest.path, now - std::chrono::hours(2));
  fs::last_write_time(folder_ / "traces/ep2-ba12-rank3.pftrace", now - std::chrono::hours(1));
  note_ = oldest;
  EXPECT_TRUE(Finish().ok());
  EXPECT_THAT(Names(), ElementsAre("ep2-ba12-rank3.pftrace", "ep2-ba13-rank3.pftrace"));
  // One that is newer than one of them has its place.
  Record(2).reset();
  fs::last_write_time(note_.path, now);
  EXPECT_TRUE(Finish().ok());
  EXPECT_THAT(Names(), ElementsAre("ep1-ba10-rank3.pftrace", "ep2-ba13-rank3.pftrace"));
}

// One that somebody made and did not lock yet has nothing in it, either.
TEST_F(LeftRecordingTest, OneInWhichNothingIsGoesOnceThatIsOld) {
  Record().reset();
  fs::resize_file(note_.path, 0);
  EXPECT_TRUE(absl::IsUnavailable(Finish().status())) << Finish().status();
  EXPECT_THAT(Names(), ElementsAre("recording-rank3-0.pftrace"));
  fs::last_write_time(note_.path, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  EXPECT_TRUE(absl::IsNotFound(Finish().status())) << Finish().status();
  EXPECT_THAT(Names(), ElementsAre());
}

// A note names what its writer likes.
TEST_F(LeftRecordingTest, WhatIsNoRecordingOfItsWriterStays) {
  Record().reset();
  const TraceJob note = note_;
  const auto refused = [&] {
    const absl::Status status = Finish().status();
    return absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  };
  note_.writer.writer = Uuid::Random();
  EXPECT_TRUE(refused()) << "another's";
  note_ = note;
  note_.writer.rank = 4;
  EXPECT_TRUE(refused()) << "another rank's";
  note_ = note;
  const fs::path directory = folder_ / "traces";
  const fs::path other = directory / "recording-rank3-1.pftrace";
  note_.path = other;
  fs::create_symlink(note.path, other);
  EXPECT_TRUE(refused()) << "a link";
  fs::remove(other);
  std::ofstream(other) << "no trace";
  EXPECT_TRUE(refused()) << "no trace";
  fs::rename(other, directory / "mine.pftrace");
  for (const char* name : {"mine.pftrace", "recording-rank3-.pftrace", "recording-rank3-x.pftrace",
                           "../traces/mine.pftrace", ""}) {
    note_.path = directory / name;
    EXPECT_TRUE(refused()) << name;
  }
  EXPECT_THAT(Names(), ElementsAre("mine.pftrace", "recording-rank3-0.pftrace"));
  EXPECT_EQ(fs::file_size(directory / "mine.pftrace"), 8U);
}

TEST_F(LeftRecordingTest, AnAgentThatLeavesLeavesItToTheNext) {
  Record().reset();
  const auto stopped = FinishLeftRecording(note_, *outbox_, [] { return false; });
  EXPECT_TRUE(absl::IsCancelled(stopped.status())) << stopped.status();
  EXPECT_THAT(Names(), ElementsAre("recording-rank3-0.pftrace"));
}

}  // namespace
}  // namespace stepwell::agent
