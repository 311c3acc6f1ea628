// Captured traces in a folder of the agent's own: what they may take, how long they wait, and what is shown for them.
#include <atomic>
#include <chrono>

#include "absl/synchronization/notification.h"
#include "client/agent/capture_room.h"
#include "tests/unit/agent/trace_sender_stand.h"

namespace stepwell::agent {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KeptCapturesTest : public TraceSenderStand {
 protected:
  KeptCapturesTest() { kept_bytes_max_ = std::int64_t{1} << 20; }
  static CapturedTrace Captured(const std::string& name) {
    CapturedTrace captured;
    captured.name = name;
    captured.write = [] { return std::string(100, 'x'); };
    return captured;
  }
  bool IsStored(const std::string& name) {
    const absl::MutexLock lock(&master_.mu);
    return master_.kept.contains(name);
  }
};

TEST_F(KeptCapturesTest, WhatNoMasterTakesIsBoundedAndThereIsRoomOnceItIsTaken) {
  {
    const absl::MutexLock lock(&master_.mu);
    master_.answers.assign(1'000'000, absl::UnavailableError("no master"));
  }
  const auto sender = Make(absl::Minutes(10), /*sends_named_files=*/false);
  const WriterIdentity writer = Job("unused", "").writer;
  sender->Keep(writer, Captured("first.pftrace"));
  absl::Notification failed;
  absl::Status why;
  CapturedTrace second = Captured("second.pftrace");
  second.fail = [&](const absl::Status& status) {
    why = status;
    failed.Notify();
  };
  // With what its note may have it is beyond the megabyte.
  sender->Keep(writer, std::move(second));
  ASSERT_TRUE(failed.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(why.message()), HasSubstr("of at most 1024"));
  {
    const absl::MutexLock lock(&master_.mu);
    master_.answers.clear();
  }
  ASSERT_TRUE(Becomes([&] { return IsStored("first.pftrace") && Notes().empty(); }));
  sender->Keep(writer, Captured("third.pftrace"));
  EXPECT_TRUE(Becomes([&] { return IsStored("third.pftrace"); }));
  EXPECT_FALSE(IsStored("second.pftrace"));
}

TEST_F(KeptCapturesTest, AMasterThatTakesNothingHoldsUpNoOther) {
  stall_max_ = absl::Milliseconds(20);
  absl::Notification cancelled;
  master_.on_call = [&] { cancelled.WaitForNotification(); };
  master_.on_cancel = [&] {
    if (!cancelled.HasBeenNotified()) cancelled.Notify();
  };
  const auto sender = Make(absl::Minutes(10), /*sends_named_files=*/false);
  const WriterIdentity writer = Job("unused", "").writer;
  std::atomic<bool> is_first_written = false, is_second_written = false;
  const auto captured = [&](const char* name, std::atomic<bool>& is_written) {
    CapturedTrace trace = Captured(name);
    trace.write = [&] {
      is_written = true;
      return std::string(100, 'x');
    };
    return trace;
  };
  sender->Keep(writer, captured("first.pftrace", is_first_written));
  ASSERT_TRUE(Becomes([&] { return is_first_written.load(); }));
  sender->Keep(writer, captured("second.pftrace", is_second_written));
  EXPECT_TRUE(Becomes([&] {
    sender->Tend();
    return is_second_written.load();
  }));
}

TEST_F(KeptCapturesTest, WhatWaitedForTooLongGoes) {
  const TraceOutbox outbox(directory_.get());
  const auto path = outbox.KeepFile("old.pftrace", "bytes");
  ASSERT_TRUE(path.ok());
  TraceJob job = Job("unused", "");
  job.path = *path;
  job.removes_file = true;
  ASSERT_TRUE(outbox.Leave(job).ok());
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(*path, now - std::chrono::hours(2));
  kept_age_max_ = absl::Hours(1);
  const auto sender = Make(absl::Minutes(10), /*sends_named_files=*/false);
  ASSERT_TRUE(BecomesDone(*sender));
  EXPECT_THAT(Notes(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(*path).parent_path()));
  EXPECT_FALSE(IsStored("old.pftrace"));
}

// The agent's own token is another user's, and those that it fetches are renewed by it.
TEST_F(KeptCapturesTest, TheTokenIsTheWritersWhereItBroughtOne) {
  const struct {
    bool shows;
    bool renews;
    const char* shown;
  } rows[] = {{true, false, "of the writer"}, {true, true, ""}, {false, false, ""}};
  for (const auto& row : rows) {
    shows_writers_token_ = row.shows;
    WriterIdentity writer = Job("unused", "").writer;
    writer.token = "of the writer";
    writer.renews_token = row.renews;
    {
      const absl::MutexLock lock(&master_.mu);
      master_.tokens.clear();
      master_.kept.clear();
    }
    const auto sender = Make(absl::Minutes(10), /*sends_named_files=*/false);
    sender->Keep(writer, Captured("a.pftrace"));
    ASSERT_TRUE(Becomes([&] { return IsStored("a.pftrace") && Notes().empty(); }));
    const absl::MutexLock lock(&master_.mu);
    EXPECT_THAT(master_.tokens, Each(std::string(row.shown)));
  }
}

TEST(CaptureRoomTest, OneOfSeveralIsShortWhereItIsOrAllAreTogether) {
  const auto all = std::make_shared<CaptureRoom>(1000);
  CaptureRoom one(600, all);
  CaptureRoom other(600, all);
  one.Add(600);
  EXPECT_TRUE(one.is_full());
  EXPECT_EQ(&one.tightest(), &one);
  EXPECT_FALSE(other.is_short());
  other.Add(350);
  EXPECT_TRUE(other.is_short());
  EXPECT_FALSE(other.is_full());
  EXPECT_EQ(&other.tightest(), all.get());
  other.Add(50);
  EXPECT_TRUE(other.is_full());
  one.Add(-600);
  EXPECT_FALSE(other.is_short());
  EXPECT_EQ(all->bytes(), 400);
}

}  // namespace
}  // namespace stepwell::agent
