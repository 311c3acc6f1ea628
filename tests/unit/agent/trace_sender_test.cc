#include "client/agent/trace_sender.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "client/agent/server_address.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kWriter[] = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

// A master that answers as it is told, and keeps what it is given.
struct FakeMaster {
  absl::Mutex mu;
  std::vector<absl::Status> answers ABSL_GUARDED_BY(mu);  // of the next calls; then it takes all
  std::vector<std::string> calls ABSL_GUARDED_BY(mu);
  std::map<std::string, std::string> kept ABSL_GUARDED_BY(mu);  // by name
  v1::TraceUpload last ABSL_GUARDED_BY(mu);
  std::vector<std::string> order ABSL_GUARDED_BY(mu);  // names, as their uploads began
  std::function<void()> on_part;                       // after each; set before the sender is made
};

class FakeCalls : public TraceCalls {
 public:
  explicit FakeCalls(FakeMaster& master) : master_(master) {}
  absl::StatusOr<v1::UploadTraceResponse> UploadTo(
      const std::string& server, const v1::TraceUpload& upload,
      const std::function<bool(v1::TracePart&)>& next) override {
    const absl::MutexLock lock(&master_.mu);
    master_.calls.push_back(server);
    if (!master_.answers.empty()) {
      const absl::Status answer = master_.answers.front();
      master_.answers.erase(master_.answers.begin());
      if (!answer.ok()) return answer;
    }
    master_.last = upload;
    master_.order.push_back(upload.header().name());
    std::string& kept = master_.kept[upload.header().name()];
    v1::TracePart part;
    while (next(part)) {
      kept += part.data();
      if (master_.on_part) master_.on_part();
    }
    v1::UploadTraceResponse response;
    response.set_trace_no(1);
    response.set_received_bytes(static_cast<std::int64_t>(kept.size()));
    response.set_complete(response.received_bytes() == upload.header().byte_count());
    return response;
  }
  void Cancel() override {}

 private:
  FakeMaster& master_;
};

class TraceSenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-trace-sender-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    auto directory = OpenAt(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<TraceSender> Make(absl::Duration unknown_max = absl::Minutes(10)) {
    return std::make_unique<TraceSender>(
        directory_.get(),
        TraceSender::Options{.machine = "node-a",
                             .retry = {absl::Milliseconds(1), absl::Milliseconds(5)},
                             .unknown_max = unknown_max},
        [](const std::string& server) { return server.empty() ? "default:1" : server; },
        std::make_unique<FakeCalls>(master_));
  }
  TraceJob Job(const std::string& name, const std::string& text, const std::string& server = "") {
    TraceJob job;
    job.writer.writer = *Uuid::FromText(kWriter);
    job.writer.server = server;
    job.writer.project = "default";
    job.writer.trial = "run";
    job.writer.rank = 3;
    job.path = absl::StrCat(path_, "/", name);
    std::ofstream(job.path, std::ios::binary) << text;
    return job;
  }
  static bool BecomesDone(TraceSender& sender) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    do {
      sender.Tend();
      if (sender.is_done()) return true;
      absl::SleepFor(absl::Milliseconds(2));
    } while (!deadline.HasPassed());
    return false;
  }
  std::vector<std::string> Notes() const { return TraceOutbox(directory_.get()).Names(); }

  std::string path_;
  FileDescriptor directory_;
  FakeMaster master_;
};

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
  job.writer.writer = *Uuid::FromText(kWriter);
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
