// What a trace that is sent is called, and of which epoch it is said to be.
#include "tests/unit/agent/trace_sender_stand.h"

namespace stepwell::agent {
namespace {

using SentTraceNamesTest = TraceSenderStand;

TEST_F(SentTraceNamesTest, WhatLiesInASessionOfTensorboardsKeepsItsOwnName) {
  std::filesystem::create_directories(path_ + "/plugins/profile/s");
  TraceJob job = Job("plugins/profile/s/host.xplane.pb", "\n\x03xyz");
  job.first_batch = 0;
  job.last_batch = 2;
  const auto sender = Make();
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.last.header().name(), "host.xplane.pb");
  EXPECT_EQ(master_.last.header().last_batch(), 2);
}

// Nothing else tells which of them goes together.
TEST_F(SentTraceNamesTest, OneWithoutBatchesIsNamedByItsSession) {
  std::filesystem::create_directories(path_ + "/plugins/profile/s");
  const auto sender = Make();
  ASSERT_TRUE(sender->Leave(Job("plugins/profile/s/host.xplane.pb", "\n\x03xyz")).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.last.header().name(), "s@host.xplane.pb");
}

TEST_F(SentTraceNamesTest, AnEpochThatNobodyKnewIsNone) {
  const struct {
    const char* name;
    std::int32_t epoch;  // -1: none
    std::int32_t last_batch;
  } rows[] = {
      {"ep0-ba8-rank3.pftrace", -1, 7},
      {"capture-ep0-ba8-rank3.pt.trace.json", -1, 7},
      {"ep0-ba8-rank3.pt.trace.json.gz", -1, 7},
      {"ep2-ba8-rank3.pftrace", 2, 7},
      {"ep0-ba7-rank0.json", 0, 6},  // Composer's, which knows
  };
  for (const auto& row : rows) {
    const auto sender = Make();
    ASSERT_TRUE(sender->Leave(Job(row.name, R"([{"ph":"X","ts":1,"dur":1,"name":"a"}])")).ok());
    ASSERT_TRUE(BecomesDone(*sender));
    const absl::MutexLock lock(&master_.mu);
    const v1::TraceHeader& header = master_.last.header();
    EXPECT_EQ(header.has_epoch() ? header.epoch() : -1, row.epoch) << row.name;
    EXPECT_EQ(header.last_batch(), row.last_batch) << row.name;
  }
}

TEST_F(SentTraceNamesTest, WhatComesWithoutItsEpochIsOfTheOneThatItsRankWasIn) {
  TraceJob job = Job("capture-ep0-ba8-rank3.pt.trace.json", R"([{"ph":"X","ts":1,"name":"a"}])");
  job.first_batch = 6;
  job.last_batch = 7;
  EpochLog epochs;
  epochs.Note(0, 1);
  epochs.Note(5, 2);
  epochs.Note(8, 3);
  const auto sender = Make();
  sender->NoteEpochs(job.writer.writer, epochs);
  sender->NoteEpochs(Uuid(), EpochLog());
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.last.header().epoch(), 2);
}

TEST_F(SentTraceNamesTest, EpochsOfTheNewestWritersAreKnown) {
  TraceJob job = Job("capture-ep0-ba8-rank3.pt.trace.json", R"([{"ph":"X","ts":1,"name":"a"}])");
  // The smallest there is.
  job.writer.writer = *Uuid::FromText("00000000-0000-0000-0000-000000000001");
  job.last_batch = 7;
  EpochLog epochs;
  epochs.Note(0, 5);
  const auto sender = Make();
  for (std::size_t i = 0; i < TraceSender::kEpochsMax; ++i) {
    sender->NoteEpochs(Uuid::Random(), epochs);
  }
  sender->NoteEpochs(job.writer.writer, epochs);
  sender->NoteEpochs(Uuid::Random(), epochs);
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.last.header().epoch(), 5);
}

}  // namespace
}  // namespace stepwell::agent
