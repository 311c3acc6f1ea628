#include "tests/unit/agent/trace_sender_stand.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using TraceSenderTest = TraceSenderStand;

TEST_F(TraceSenderTest, ANoteIsAFileAtTheMasterWithItsRankMachineAndBatches) {
  TraceJob job = Job("ep2-ba8-rank3.pftrace", "some bytes");
  job.epoch = 2;
  job.first_batch = 4;
  job.last_batch = 7;
  const auto sender = Make();
  EXPECT_TRUE(sender->is_done());
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Notes(), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(job.path)) << "it is the user's";
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.kept["ep2-ba8-rank3.pftrace"], "some bytes");
  const v1::TraceHeader& header = master_.last.header();
  EXPECT_EQ(header.rank(), 3);
  EXPECT_EQ(header.machine(), "node-a");
  EXPECT_EQ(header.writer(), job.writer.writer.ToBytes());
  EXPECT_EQ(header.epoch(), 2);
  EXPECT_EQ(header.first_batch(), 4);
  EXPECT_EQ(header.last_batch(), 7);
  EXPECT_EQ(master_.last.trial().external_id(), "run");
  EXPECT_THAT(master_.calls, ::testing::Each(std::string("default:1")));
}

TEST_F(TraceSenderTest, WhatWasHandedOverGoesOnceItIsStored) {
  TraceJob job =
      Job("rank3.pt.trace.json", R"({"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":"a"}]})");
  job.removes_file = true;
  job.writer.trial = "id:7";
  const auto sender = Make();
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_FALSE(std::filesystem::exists(job.path));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.last.header().format(), v1::TRACE_FORMAT_CHROME_JSON);
  EXPECT_EQ(master_.last.trial().trial_id(), 7);
}

TEST_F(TraceSenderTest, WhatMayStillBeTakenIsTriedAgain) {
  const absl::Status rows[] = {
      absl::UnavailableError("no master"),
      absl::NotFoundError("no trial of that name yet"),
      absl::FailedPreconditionError("no writer of it yet"),
      absl::DataLossError("it changed"),
      absl::InternalError("?"),
  };
  const auto sender = Make();
  for (const absl::Status& row : rows) {
    SCOPED_TRACE(row.ToString());
    {
      const absl::MutexLock lock(&master_.mu);
      master_.kept.clear();
      master_.answers = {row, row};
    }
    ASSERT_TRUE(sender->Leave(Job("rank3.pftrace", "bytes")).ok());
    ASSERT_TRUE(BecomesDone(*sender));
    const absl::MutexLock lock(&master_.mu);
    EXPECT_EQ(master_.kept["rank3.pftrace"], "bytes");
  }
}

TEST_F(TraceSenderTest, WhatNobodyWillTakeIsGivenUpAndTheNextOneSent) {
  const auto sender = Make(absl::ZeroDuration());
  const absl::Status rows[] = {
      absl::InvalidArgumentError("no"),
      absl::ResourceExhaustedError("above the cap"),
      absl::UnimplementedError("an older master"),
      absl::NotFoundError("the trial was deleted, and time is over"),
  };
  for (const absl::Status& row : rows) {
    SCOPED_TRACE(row.ToString());
    {
      const absl::MutexLock lock(&master_.mu);
      master_.kept.clear();
      master_.answers = {row};
    }
    const TraceJob refused = Job("refused.pftrace", "bytes");
    ASSERT_TRUE(sender->Leave(refused).ok());
    ASSERT_TRUE(BecomesDone(*sender));
    ASSERT_TRUE(sender->Leave(Job("next.pftrace", "bytes")).ok());
    ASSERT_TRUE(BecomesDone(*sender));
    EXPECT_THAT(Notes(), IsEmpty());
    EXPECT_TRUE(std::filesystem::exists(refused.path));
    const absl::MutexLock lock(&master_.mu);
    EXPECT_EQ(master_.kept.count("refused.pftrace"), 0U);
    EXPECT_EQ(master_.kept["next.pftrace"], "bytes");
  }
  // In a folder that was made for it, where nobody looks.
  std::filesystem::create_directory(path_ + "/stepwell-traces-x");
  TraceJob hidden = Job("stepwell-traces-x/hidden.pftrace", "bytes");
  hidden.removes_file = true;
  {
    const absl::MutexLock lock(&master_.mu);
    master_.answers = {absl::ResourceExhaustedError("above the cap")};
  }
  ASSERT_TRUE(sender->Leave(hidden).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/stepwell-traces-x"));
  // Gone, empty, of no known kind.
  TraceJob gone = Job("gone.pftrace", "");
  ASSERT_TRUE(sender->Leave(gone).ok());
  ASSERT_TRUE(sender->Leave(Job("what.bin", "\x01")).ok());
  std::ofstream(path_ + "/traces/no-note.json") << "{\"path\": \"relative\"}";
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Notes(), IsEmpty());
  const TraceTally::Counts counts = sender->counts();
  EXPECT_EQ(counts.uploaded, 4U);
  EXPECT_EQ(counts.given_up, 4U + 4U) << "a trial that is not there is no file that is gone";
  EXPECT_EQ(counts.gone, 0U);
  EXPECT_EQ(counts.refused, 0U);
}

// Doubt begins with the first answer that may be the last word, and ends with one that says nothing of the trace.
TEST_F(TraceSenderTest, AMasterThatWasAwayForLongerThanDoubtsLastIsAskedAgain) {
  constexpr absl::Duration kDoubtsMax = absl::Milliseconds(100);
  const absl::Status doubts[] = {absl::FailedPreconditionError("no writer of it yet"),
                                 absl::NotFoundError("no trial of that name yet"),
                                 absl::DataLossError("it changed")};
  for (const absl::Status& doubt : doubts) {
    SCOPED_TRACE(doubt.ToString());
    SteadyTime away_until = SteadyTime::Now() + 2 * kDoubtsMax;
    int doubted = 0;
    {
      const absl::MutexLock lock(&master_.mu);
      master_.kept.clear();
    }
    // Away, in doubt, away again, in doubt again; then it takes it.
    master_.on_call = [&] {
      master_.mu.AssertHeld();
      if (!away_until.HasPassed()) {
        master_.answers = {absl::UnavailableError("no master")};
      } else if (doubted < 2) {
        master_.answers = {doubt};
        if (++doubted == 1) away_until = SteadyTime::Now() + 2 * kDoubtsMax;
      }
    };
    const auto sender = Make(kDoubtsMax);
    ASSERT_TRUE(sender->Leave(Job("rank3.pftrace", "bytes")).ok());
    ASSERT_TRUE(BecomesDone(*sender));
    sender->Stop();
    const absl::MutexLock lock(&master_.mu);
    EXPECT_EQ(master_.kept["rank3.pftrace"], "bytes");
    EXPECT_EQ(doubted, 2);
  }
}

// Alone it is more than those that wait may hold. What is in the file says whether it was packed anew.
TEST_F(TraceSenderTest, WhatIsLargeIsPackedOnceForAllItsTries) {
  prepared_bytes_max_ = 1;
  const std::string json = R"({"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":"a"}]})";
  const std::string other = R"({"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":"b"}]})";
  const auto sender = Make();
  ASSERT_TRUE(sender->Leave(Job("known.json", json)).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const TraceJob job = Job("away.json", json);
  {
    const absl::MutexLock lock(&master_.mu);
    ASSERT_THAT(master_.kept, SizeIs(1));
    master_.answers.assign(3, absl::UnavailableError("no master"));
    master_.on_call = [&] {
      const auto changed = std::filesystem::last_write_time(job.path);
      std::ofstream(job.path, std::ios::binary) << other;
      std::filesystem::last_write_time(job.path, changed);
    };
  }
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  ASSERT_THAT(master_.kept, SizeIs(2));
  EXPECT_EQ(master_.kept.begin()->second, master_.kept.rbegin()->second);
}

TEST_F(TraceSenderTest, WhatChangesWhileItIsSentIsDigestedAnew) {
  const TraceJob job = Job("rank3.pftrace", "bytes");
  {
    const absl::MutexLock lock(&master_.mu);
    master_.answers = {absl::FailedPreconditionError("no writer of it yet")};
  }
  master_.on_call = [&] { std::ofstream(job.path, std::ios::binary) << "other bytes"; };
  const auto sender = Make();
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.kept["rank3.pftrace"], "other bytes");
  EXPECT_EQ(master_.last.header().byte_count(), 11);
}

// A path that cannot be followed for now; a file that is gone is given up at once.
TEST_F(TraceSenderTest, WhatCannotBeReadForAMomentIsTriedAgain) {
  const std::string folder = path_ + "/loop";
  std::filesystem::create_symlink(folder, folder);
  const TraceJob job = Job("loop/rank3.pftrace", "");
  TraceJob gone = job;
  gone.path = path_ + "/gone/rank3.pftrace";
  const auto sender = Make();
  ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(sender->Leave(gone).ok());
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  while (Notes().size() > 1 && !deadline.HasPassed()) {
    sender->Tend();
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_THAT(Notes(), SizeIs(1));
  EXPECT_FALSE(sender->is_done());
  // At once: it is never gone.
  std::filesystem::create_directory(path_ + "/whole");
  std::ofstream(path_ + "/whole/rank3.pftrace", std::ios::binary) << "bytes";
  std::filesystem::create_directory_symlink("whole", path_ + "/link");
  std::filesystem::rename(path_ + "/link", folder);
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Notes(), IsEmpty());
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.kept["rank3.pftrace"], "bytes");
}

TEST_F(TraceSenderTest, WhatIsTooLargeToBePackedIsNotTried) {
  packed_of_max_ = 20;
  const auto sender = Make();
  const std::string json = R"({"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":"a"}]})";
  ASSERT_TRUE(sender->Leave(Job("rank3.pt.trace.json", json)).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Notes(), IsEmpty());
  {
    const absl::MutexLock lock(&master_.mu);
    EXPECT_THAT(master_.calls, IsEmpty());
  }
  // What is sent as it is takes no room.
  ASSERT_TRUE(sender->Leave(Job("rank3.pftrace", std::string(100, 'x'))).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.kept.count("rank3.pftrace"), 1U);
}

// A link leads wherever its maker has no right to; a FIFO would keep the thread for ever.
TEST_F(TraceSenderTest, WhatIsNoFileOfTheSpoolsOwnerIsNotSent) {
  const auto sender = Make();
  const TraceJob linked = Job("link.pftrace", "");
  std::filesystem::remove(linked.path);
  std::filesystem::create_symlink(Job("target.pftrace", "bytes").path, linked.path);
  const TraceJob waiting = Job("fifo.pftrace", "");
  std::filesystem::remove(waiting.path);
  ASSERT_EQ(mkfifo(waiting.path.c_str(), 0600), 0);
  const TraceJob folder = Job("folder.pftrace", "");
  std::filesystem::remove(folder.path);
  std::filesystem::create_directory(folder.path);
  for (const TraceJob& job : {linked, waiting, folder}) ASSERT_TRUE(sender->Leave(job).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Notes(), IsEmpty());
  const absl::MutexLock lock(&master_.mu);
  EXPECT_THAT(master_.kept, IsEmpty());
}

TEST_F(TraceSenderTest, OfAnotherUsersFilesOnlyWhatAllMayReadIsSent) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has files of others";
  const auto sender = Make();
  const TraceJob secret = Job("secret.pftrace", "bytes");
  const TraceJob open = Job("open.pftrace", "bytes");
  for (const TraceJob& job : {secret, open}) {
    ASSERT_EQ(chown(job.path.c_str(), 40'001, 0), 0);
    ASSERT_TRUE(sender->Leave(job).ok());
  }
  ASSERT_EQ(chmod(secret.path.c_str(), 0640), 0);
  ASSERT_EQ(chmod(open.path.c_str(), 0644), 0);
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Notes(), IsEmpty());
  const absl::MutexLock lock(&master_.mu);
  EXPECT_THAT(master_.kept, ElementsAre(::testing::Key(std::string("open.pftrace"))));
}

TEST_F(TraceSenderTest, WhatIsForNoMasterWaitsForAnUpload) {
  {
    const auto sender = Make();
    ASSERT_TRUE(sender->Leave(Job("rank3.pftrace", "bytes", kOffline)).ok());
    ASSERT_TRUE(BecomesDone(*sender));
  }
  EXPECT_THAT(Notes(), SizeIs(1));
  const absl::MutexLock lock(&master_.mu);
  EXPECT_THAT(master_.calls, IsEmpty());
}

TEST_F(TraceSenderTest, WhatOneAgentLeavesTheNextOneSends) {
  {
    const absl::MutexLock lock(&master_.mu);
    master_.answers.assign(100'000, absl::UnavailableError("no master"));
  }
  {
    const auto sender = Make();
    ASSERT_TRUE(sender->Leave(Job("rank3.pftrace", "bytes")).ok());
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    const auto call_count = [&] {
      const absl::MutexLock lock(&master_.mu);
      return master_.calls.size();
    };
    while (call_count() < 3 && !deadline.HasPassed()) {
      sender->Tend();
      absl::SleepFor(absl::Milliseconds(2));
    }
    EXPECT_GE(call_count(), 3U);
    EXPECT_FALSE(sender->is_done());
  }
  EXPECT_THAT(Notes(), SizeIs(1));
  {
    const absl::MutexLock lock(&master_.mu);
    master_.answers.clear();
  }
  const auto next = Make();
  ASSERT_TRUE(BecomesDone(*next));
  EXPECT_THAT(Notes(), IsEmpty());
  const absl::MutexLock lock(&master_.mu);
  EXPECT_EQ(master_.kept["rank3.pftrace"], "bytes");
}

TEST_F(TraceSenderTest, ACaptureIsWrittenWhileAnotherFileIsSentAndGoesNext) {
  std::unique_ptr<TraceSender> sender;
  bool was_kept = false;
  bool was_written = false;
  master_.on_part = [&] {
    if (was_kept) return;
    was_kept = true;
    CapturedTrace captured;
    captured.name = "capture-rank3.pftrace";
    captured.write = [&] {
      was_written = true;
      return std::string("captured bytes");
    };
    sender->Keep(Job("unused", "").writer, std::move(captured));
  };
  sender = Make();
  ASSERT_TRUE(sender->Leave(Job("a.pftrace", "bytes")).ok());
  ASSERT_TRUE(sender->Leave(Job("b.pftrace", "bytes")).ok());
  ASSERT_TRUE(sender->Leave(Job("c.pftrace", "bytes")).ok());
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_TRUE(was_written);
  const absl::MutexLock lock(&master_.mu);
  // Each is asked for what is committed, then sent.
  ASSERT_THAT(master_.order, SizeIs(8));
  EXPECT_EQ(master_.order[2], "capture-rank3.pftrace");
  EXPECT_EQ(master_.kept["capture-rank3.pftrace"], "captured bytes");
}

TEST_F(TraceSenderTest, AFileThatNoNoteNamesIsSweptAtTheStart) {
  const TraceOutbox outbox(directory_.get());
  const auto left = outbox.KeepFile("left.pftrace", "bytes");
  const auto young = outbox.KeepFile("young.pftrace", "bytes");
  const auto named = outbox.KeepFile("named.pftrace", "bytes");
  ASSERT_TRUE(left.ok() && young.ok() && named.ok());
  const auto an_hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::string& path : {*left, *named}) {
    std::filesystem::last_write_time(std::filesystem::path(path).parent_path(), an_hour_ago);
  }
  TraceJob job = Job("unused", "", kOffline);
  job.path = *named;
  job.removes_file = true;
  ASSERT_TRUE(outbox.Leave(job).ok());
  const auto sender = Make();
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_TRUE(std::filesystem::exists(*named));
  EXPECT_TRUE(std::filesystem::exists(*young)) << "its note may come";
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(*left).parent_path()));
}

// Its notes still say where it was copied from.
TEST_F(TraceSenderTest, OfACopiedSpoolNothingIsSweptWhoseFileIsYetToCome) {
  const TraceOutbox outbox(directory_.get());
  const auto copied = outbox.KeepFile("came-already", "bytes");
  ASSERT_TRUE(copied.ok());
  const std::filesystem::path folder = std::filesystem::path(*copied).parent_path();
  const auto an_hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(folder, an_hour_ago);
  TraceJob job = Job("unused", "", kOffline);
  job.path = absl::StrCat("/gone/f1/traces/", folder.filename().string(), "/rank3.pftrace");
  job.removes_file = true;
  ASSERT_TRUE(outbox.Leave(job).ok());
  const auto sender = Make();
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_TRUE(std::filesystem::exists(*copied));
}

TEST(TraceJobTest, IsReadAsItWasWrittenAndNothingElseIs) {
  TraceJob job;
  job.writer.writer = *Uuid::FromText(kSendersWriter);
  job.writer.trial = "run \"a\"";
  job.writer.rank = 2;
  job.path = "/data/\"x\".pftrace";
  job.last_batch = 12;
  job.removes_file = true;
  const auto read = ParseTraceJob(ToTraceJobJson(job));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->path, job.path);
  EXPECT_EQ(read->writer.trial, job.writer.trial);
  EXPECT_EQ(read->writer.rank, 2);
  EXPECT_EQ(read->epoch, -1);
  EXPECT_EQ(read->last_batch, 12);
  EXPECT_TRUE(read->removes_file);
  const std::string writer = ToWriterJson(job.writer);
  const std::string rows[] = {
      "",
      "[]",
      "{\"path\": \"/a\"}",
      "{\"path\": \"/a\", \"writer\": {}}",
      absl::StrCat("{\"path\": \"a\", \"writer\": ", writer, "}"),
      absl::StrCat("{\"path\": 7, \"writer\": ", writer, "}"),
      absl::StrCat("{\"path\": \"/a\\u0000b\", \"writer\": ", writer, "}"),
  };
  for (const std::string& row : rows) EXPECT_FALSE(ParseTraceJob(row).ok()) << row;
  // As deep as a note may be, which no stack holds.
  const std::string opening(200'000, '[');
  const std::string closing(200'000, ']');
  EXPECT_FALSE(
      ParseTraceJob(absl::StrCat("{\"path\": \"/a\", \"writer\": ", opening, closing, "}")).ok());
  const auto odd = ParseTraceJob(absl::StrCat(
      "{\"path\": \"/a\", \"epoch\": -5, \"last_batch\": 9e99, \"first_batch\": 4294967296, "
      "\"removes_file\": 1, \"writer\": ",
      writer, "}"));
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(odd->epoch, -1);
  EXPECT_EQ(odd->first_batch, -1);
  EXPECT_EQ(odd->last_batch, -1);
  EXPECT_FALSE(odd->removes_file);
}

}  // namespace
}  // namespace stepwell::agent
