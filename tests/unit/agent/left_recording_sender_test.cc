// What an agent that was killed recorded, with the next one's sender.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "client/agent/rank_trace.h"
#include "tests/unit/agent/no_room.h"
#include "tests/unit/agent/trace_sender_stand.h"

namespace stepwell::agent {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeftRecordingSenderTest : public TraceSenderStand {
 protected:
  // Of batches 0 to 2, and nobody ends it.
  std::unique_ptr<RankTrace> Record(TraceSender& sender, const std::string& server = "") {
    WriterIdentity writer = Job("none", "", server).writer;
    writer.opened_time_us = 1'700'000'000'000'000;
    writer.tracing = {.directory = path_ + "/recorded", .uploads = true};
    auto trace = std::make_unique<RankTrace>(
        writer, SpanTrace::Source{.machine = "node-a"},
        RankTrace::Notes{
            .begin = [&sender](const TraceJob& job) { return sender.NoteRecording(job); },
            .leave = [&sender](const TraceJob& job) { return sender.Leave(job); }});
    trace->EnterThread({.worker = -1, .index = 0, .id = 41});
    for (int batch = 0; batch < 3; ++batch) {
      const std::int64_t begin_ns = writer.opened_time_us * 1000 + 100 * batch;
      trace->AddStep(begin_ns, begin_ns + 100, batch);
      trace->Flush();
    }
    return trace;
  }
  std::vector<std::string> Recorded() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(path_ + "/recorded")) {
      names.push_back(each.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<std::string> LeftNotes() const { return *TraceOutbox(directory_.get()).Recordings(); }
};

TEST_F(LeftRecordingSenderTest, WhatAnAgentThatWasKilledRecordedGetsItsNameAndIsSent) {
  auto sender = Make();
  auto trace = Record(*sender);
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Recorded(), ElementsAre("recording-rank3-0.pftrace")) << "it grows";
  EXPECT_THAT(LeftNotes(), SizeIs(1));
  sender->Stop();
  trace.reset();  // as it is
  sender = Make();
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Recorded(), ElementsAre("ep0-ba3-rank3.pftrace"));
  EXPECT_THAT(LeftNotes(), IsEmpty());
  EXPECT_THAT(Notes(), IsEmpty());
  const absl::MutexLock lock(&master_.mu);
  EXPECT_FALSE(master_.kept["ep0-ba3-rank3.pftrace"].empty());
  EXPECT_EQ(master_.last.header().first_batch(), 0);
  EXPECT_EQ(master_.last.header().last_batch(), 2);
}

TEST_F(LeftRecordingSenderTest, ARecordingThatEndsLeavesNoNoteOfItself) {
  const auto sender = Make();
  const auto trace = Record(*sender);
  trace->Finish();
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Recorded(), ElementsAre("ep0-ba3-rank3.pftrace"));
  EXPECT_THAT(LeftNotes(), IsEmpty());
  const absl::MutexLock lock(&master_.mu);
  EXPECT_THAT(master_.order, Each(std::string("ep0-ba3-rank3.pftrace")));
  EXPECT_THAT(master_.kept, SizeIs(1));
}

// No note comes or goes meanwhile.
TEST_F(LeftRecordingSenderTest, OneWhoseWriterGoesLaterIsLookedAtAgain) {
  auto sender = Make();
  auto trace = Record(*sender);
  sender = Make();
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Recorded(), ElementsAre("recording-rank3-0.pftrace"));
  trace.reset();
  EXPECT_TRUE(Becomes([&] { return LeftNotes().empty() && sender->is_done(); }));
  EXPECT_THAT(Recorded(), ElementsAre("ep0-ba3-rank3.pftrace"));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_FALSE(master_.kept["ep0-ba3-rank3.pftrace"].empty());
}

TEST_F(LeftRecordingSenderTest, OneThatFoundNoRoomForItsNoteIsTriedAgain) {
  auto sender = Make();
  Record(*sender).reset();
  sender = Make();
  {
    const NoRoom none;
    sender->Tend();
    EXPECT_TRUE(Becomes([&] { return Recorded().size() == 2; }));
    EXPECT_THAT(LeftNotes(), SizeIs(1));
  }
  EXPECT_TRUE(Becomes([&] { return LeftNotes().empty() && sender->is_done(); }));
  EXPECT_THAT(Recorded(), ElementsAre("ep0-ba3-rank3.pftrace"));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_FALSE(master_.kept["ep0-ba3-rank3.pftrace"].empty());
}

// Also of this very agent, which had no room for it.
TEST_F(LeftRecordingSenderTest, WhatEndedWithoutANoteIsFinishedByTheSameAgent) {
  const auto sender = Make();
  auto trace = Record(*sender);
  trace->Flush();
  {
    const NoRoom none;
    trace->Finish();
  }
  EXPECT_THAT(LeftNotes(), SizeIs(1));
  sender->Tend();
  EXPECT_TRUE(Becomes([&] { return LeftNotes().empty() && sender->is_done(); }));
  EXPECT_THAT(Recorded(), ElementsAre("ep0-ba3-rank3.pftrace"));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_FALSE(master_.kept["ep0-ba3-rank3.pftrace"].empty());
}

TEST_F(LeftRecordingSenderTest, ADirectoryThatIsNotThereYetIsWaitedForForAWhile) {
  const std::string away = path_ + "/away";
  auto sender = Make();
  Record(*sender).reset();
  std::filesystem::rename(path_ + "/recorded", away);
  sender = Make();
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(LeftNotes(), SizeIs(1));
  std::filesystem::rename(away, path_ + "/recorded");
  EXPECT_TRUE(Becomes([&] { return LeftNotes().empty() && sender->is_done(); }));
  EXPECT_THAT(Recorded(), ElementsAre("ep0-ba3-rank3.pftrace"));
  sender->Stop();
  Record(*sender).reset();
  std::filesystem::rename(path_ + "/recorded", away);
  sender = Make(absl::Milliseconds(20));
  sender->Tend();
  EXPECT_TRUE(Becomes([&] { return LeftNotes().empty(); }));
}

TEST_F(LeftRecordingSenderTest, CapturesGoFirstAndOneIsSentBeforeTheNextIsFinished) {
  auto sender = Make();
  auto first = Record(*sender);
  Record(*sender).reset();
  first.reset();
  sender->Stop();
  std::vector<std::size_t> unfinished;
  master_.on_call = [&] {
    const auto names = Recorded();
    unfinished.push_back(static_cast<std::size_t>(
        std::count_if(names.begin(), names.end(),
                      [](const std::string& name) { return name.starts_with("recording-"); })));
  };
  sender = Make();
  CapturedTrace captured;
  captured.name = "capture.pftrace";
  captured.write = [] { return std::string("captured bytes"); };
  sender->Keep(Job("none", "").writer, std::move(captured));
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_THAT(master_.kept, SizeIs(3));
  EXPECT_EQ(master_.order.front(), "capture.pftrace");
  EXPECT_EQ(unfinished.front(), 2U);
  EXPECT_EQ(unfinished.back(), 0U);
  EXPECT_THAT(unfinished, ::testing::Contains(1U));
}

// Whoever may write the spool may make one; it is no work without end.
TEST_F(LeftRecordingSenderTest, ANoteThatCannotBeRemovedIsLookedAtByTurns) {
  std::filesystem::create_directories(path_ + "/traces/x.recording");
  recordings_.rest = absl::Minutes(10);
  const auto sender = Make();
  sender->Tend();
  EXPECT_TRUE(BecomesDone(*sender));
}

// What was recorded offline gets its name, and waits for who may send it; whose notes are not one's own names nothing.
TEST_F(LeftRecordingSenderTest, ARecordingOfAnothersSpoolStaysAsItIsUntilItIsSaidToBeOnesOwn) {
  auto sender = Make();
  Record(*sender, kOffline).reset();
  sender = Make(absl::Minutes(10), /*sends_named_files=*/false);
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Recorded(), ElementsAre("recording-rank3-0.pftrace"));
  EXPECT_THAT(LeftNotes(), SizeIs(1));
  sender = Make();
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Recorded(), ElementsAre("ep0-ba3-rank3.pftrace"));
  EXPECT_THAT(LeftNotes(), IsEmpty());
  EXPECT_THAT(Notes(), SizeIs(1)) << "for an upload";
}

}  // namespace
}  // namespace stepwell::agent
