// What a database cannot take in its time is found, kept, and tried again; others pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/group_committer.h"
#include "server/slow_search.h"
#include "storage/pg_error.h"
#include "tests/fakes/fake_ingest_store.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;

// All streams at once: of each writer all that was committed, in order.
class Acked final : public CommitListener {
 public:
  void Committed(const CheckedChunk& chunk) override {
    const std::pair key(chunk.trial_id, chunk.writer_no);
    EXPECT_EQ(chunk.first_sequence, ++last_[key]);
    if (chunk.rejected) ++rejected_count_;
  }
  void TellAcks() override {}
  void Refenced(const CheckedChunk& /*chunk*/) override { ADD_FAILURE() << "nobody else writes"; }
  void End(const absl::Status& why) override { ADD_FAILURE() << why; }

  std::uint64_t last(const OpenedWriter& writer) {
    return last_[{writer.trial_id, writer.writer_no}];
  }
  int rejected_count() const { return rejected_count_; }

 private:
  std::map<std::pair<TrialId, WriterNo>, std::uint64_t> last_;
  int rejected_count_ = 0;
};

class SlowChunksTest : public ::testing::Test {
 protected:
  SlowChunksTest() {
    const auto owner = store_.AcquireOwnership({.master_id = "master-a", .address = "here"});
    EXPECT_TRUE(owner.ok()) << owner.status();
    epoch_ = owner->epoch;
    state_.SetDatabase(absl::OkStatus());
    state_.BecomeOwner(epoch_, /*recovering=*/false);
  }

  OpenedWriter OpenWriter() { return OpenWriterOf(absl::StrCat("t", ++trial_count_)); }
  OpenedWriter OpenWriterOf(const std::string& trial) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = trial;
    request.writer = Uuid::Random();
    request.attempt_key = "job";
    request.owner_epoch = epoch_;
    const auto opened = store_.OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    heads_.NoteWriter(opened->trial_id, opened->writer_no, 0);
    return *opened;
  }
  void Send(const OpenedWriter& writer) {
    CheckedChunk chunk;
    chunk.listener = committed_;
    chunk.trial_id = writer.trial_id;
    chunk.writer_no = writer.writer_no;
    chunk.generation = writer.generation;
    chunk.attempt = 1;
    chunk.first_sequence = chunk.last_sequence = ++sent_[{writer.trial_id, writer.writer_no}];
    chunk.journal_entry = absl::StrCat("chunk ", chunk.first_sequence);
    chunk.bytes = 100;
    ASSERT_TRUE(queue_.Add(chunk, SteadyTime::Now()).ok());
  }
  // While the group has this chunk the database does not end in time.
  void MakeSlow(const OpenedWriter& writer, std::uint64_t sequence) {
    store_.FailWhere([=](const CommitGroupRequest& request) -> absl::Status {
      return Has(request, writer, sequence) ? absl::DeadlineExceededError("statement timeout")
                                            : absl::OkStatus();
    });
  }
  static bool Has(const CommitGroupRequest& request, const OpenedWriter& writer,
                  std::uint64_t sequence, bool with_gaps = true) {
    return std::any_of(
        request.advances.begin(), request.advances.end(), [&](const WriterAdvance& advance) {
          return advance.trial_id == writer.trial_id && advance.writer_no == writer.writer_no &&
                 advance.first_sequence <= sequence && sequence <= advance.last_sequence &&
                 (with_gaps || advance.gaps.empty());
        });
  }
  void CommitTimes(int count) {
    for (int i = 0; i < count; ++i) committer_.CommitNext(SteadyTime::Now());
  }

  testing::FakeIngestStore store_;
  std::int64_t epoch_ = 0;
  const std::shared_ptr<Acked> committed_ = std::make_shared<Acked>();
  std::map<std::pair<TrialId, WriterNo>, std::uint64_t> sent_;
  int trial_count_ = 0;
  Heads heads_;
  MasterState state_;
  IngestStats stats_;
  CommitQueue queue_{{}};
  GroupCommitter committer_{
      {.backoff = {.first = absl::Microseconds(1), .longest = absl::Microseconds(2)},
       .slow_rest = absl::Hours(1)},
      {store_, queue_, heads_, state_, stats_, RealClock::Get()}};
};

TEST_F(SlowChunksTest, OthersPassBetweenTwoTriesOfOneThatNeverEndsInTime) {
  std::vector<OpenedWriter> writers;
  for (int i = 0; i < 8; ++i) writers.push_back(OpenWriter());
  for (int round = 0; round < 3; ++round) {
    for (const OpenedWriter& writer : writers) Send(writer);
  }
  const OpenedWriter slow = writers[5];
  MakeSlow(slow, 2);
  CommitTimes(20);
  const auto expect = [&](std::uint64_t others, std::uint64_t of_slow) {
    for (const OpenedWriter& writer : writers) {
      EXPECT_EQ(committed_->last(writer), writer.trial_id == slow.trial_id ? of_slow : others);
    }
  };
  expect(3, 1);
  EXPECT_EQ(queue_.bytes(), 200) << "what rests is kept, and takes its room";
  // Whatever comes meanwhile passes at once, but for what is behind the slow one.
  for (const OpenedWriter& writer : writers) Send(writer);
  CommitTimes(1);
  expect(4, 1);
  // Its rest over, it comes first, and by itself.
  queue_.Close();
  for (int i = 0; i < 3; ++i) {
    CommitTimes(1);
    expect(4, 1);
  }
  store_.FailWhere(nullptr);
  CommitTimes(1);
  expect(4, 2);
  CommitTimes(1);
  expect(4, 4);
  EXPECT_EQ(queue_.bytes(), 0);
  EXPECT_EQ(committed_->rejected_count(), 0) << "slow is not bad";
}

// As a lock on the trial's row has it: its ranks are found together, not one by one.
TEST_F(SlowChunksTest, AllOfATrialThatIsHeldUpWaitTogether) {
  std::vector<OpenedWriter> held;
  for (int i = 0; i < 8; ++i) held.push_back(OpenWriterOf("held"));
  const OpenedWriter other = OpenWriter();
  for (const OpenedWriter& writer : held) Send(writer);
  Send(other);
  store_.FailWhere([&](const CommitGroupRequest& request) -> absl::Status {
    const auto is_held = [&](const auto& advance) { return advance.trial_id == held[0].trial_id; };
    return std::any_of(request.advances.begin(), request.advances.end(), is_held)
               ? absl::DeadlineExceededError("statement timeout")
               : absl::OkStatus();
  });
  CommitTimes(5);
  EXPECT_EQ(committed_->last(other), 1u);
  const int tries = store_.commit_count();
  EXPECT_LE(tries, 8) << "9 chunks halved down to one, one of which is tried twice";
  for (std::uint64_t sent = 2; sent <= 20; ++sent) {
    for (const OpenedWriter& writer : held) Send(writer);
    Send(other);
    CommitTimes(1);
    EXPECT_GE(committed_->last(other), sent - 1) << "the first one is tried once more";
  }
  EXPECT_LE(store_.commit_count(), tries + 19 + 1);
  store_.FailWhere(nullptr);
  queue_.EndRests();
  CommitTimes(20);
  for (const OpenedWriter& writer : held) EXPECT_EQ(committed_->last(writer), 20u);
}

// A database that stands for all holds nobody longer than it stands.
TEST_F(SlowChunksTest, WhereNobodyPassesNobodyRests) {
  std::vector<OpenedWriter> writers;
  for (int i = 0; i < 8; ++i) writers.push_back(OpenWriter());
  for (const OpenedWriter& writer : writers) Send(writer);
  store_.FailWhere([](const CommitGroupRequest&) -> absl::Status {
    return absl::DeadlineExceededError("statement timeout");
  });
  CommitTimes(5);
  store_.FailWhere(nullptr);
  CommitTimes(10);
  for (const OpenedWriter& writer : writers) EXPECT_EQ(committed_->last(writer), 1u);
}

TEST_F(SlowChunksTest, OneThatIsAloneIsTriedWithoutARest) {
  const OpenedWriter writer = OpenWriter();
  MakeSlow(writer, 1);
  Send(writer);
  CommitTimes(5);
  EXPECT_EQ(store_.commit_count(), 6) << "a group is tried twice before it is slow";
  EXPECT_EQ(committed_->last(writer), 0u);
  store_.FailWhere(nullptr);
  CommitTimes(1);
  EXPECT_EQ(committed_->last(writer), 1u);
}

TEST_F(SlowChunksTest, OnceIsNotSlow) {
  const OpenedWriter first = OpenWriter();
  const OpenedWriter second = OpenWriter();
  Send(first);
  Send(second);
  store_.FailNext(absl::DeadlineExceededError("statement timeout"));
  CommitTimes(1);
  EXPECT_EQ(store_.commit_count(), 2);
  EXPECT_EQ(committed_->last(first) + committed_->last(second), 2u);
}

TEST_F(SlowChunksTest, WhatIsRefusedBesideItIsConsumedAndTheOrderHolds) {
  std::vector<OpenedWriter> writers;
  for (int i = 0; i < 4; ++i) writers.push_back(OpenWriter());
  for (int round = 0; round < 4; ++round) {
    for (const OpenedWriter& writer : writers) Send(writer);
  }
  // Refused as it came, not as the record of its refusal.
  store_.FailWhere([&](const CommitGroupRequest& request) -> absl::Status {
    if (Has(request, writers[2], 2, /*with_gaps=*/false)) return absl::InvalidArgumentError("bad");
    if (Has(request, writers[1], 3)) return absl::DeadlineExceededError("statement timeout");
    return absl::OkStatus();
  });
  CommitTimes(20);
  EXPECT_EQ(committed_->last(writers[0]), 4u);
  EXPECT_EQ(committed_->last(writers[1]), 2u);
  EXPECT_EQ(committed_->last(writers[2]), 4u);
  EXPECT_EQ(committed_->last(writers[3]), 4u);
  EXPECT_EQ(committed_->rejected_count(), 1);
}

// Its COMMIT may have been: it is asked for as it was.
TEST_F(SlowChunksTest, AGroupInDoubtStaysWhole) {
  const OpenedWriter first = OpenWriter();
  const OpenedWriter second = OpenWriter();
  Send(first);
  Send(second);
  int calls = 0;
  std::vector<std::size_t> sizes;
  store_.FailWhere([&](const CommitGroupRequest& request) -> absl::Status {
    sizes.push_back(request.advances.size());
    if (++calls == 1) return CommitUnknown("lost");
    return calls < 5 ? absl::DeadlineExceededError("statement timeout") : absl::OkStatus();
  });
  CommitTimes(1);
  EXPECT_THAT(sizes, ElementsAre(2, 2, 2, 2, 2));
  EXPECT_EQ(committed_->last(first) + committed_->last(second), 2u);
}

TEST(SlowSearchTest, FindsTheOneByHalvingAndLetsAllBeforeItPass) {
  constexpr std::size_t kCount = 100;
  for (std::size_t slow = 0; slow < kCount; ++slow) {
    SCOPED_TRACE(slow);
    SlowSearch search;
    std::size_t stored = 0;
    int timeouts = 0;
    for (bool is_found = false; !is_found;) {
      ASSERT_LE(timeouts, 8);
      const std::size_t taken = std::min(search.count_max(), kCount - stored);
      ASSERT_GT(taken, 0u);
      EXPECT_EQ(search.tries(), timeouts == 0 ? 2 : 1);
      if (stored + taken <= slow) {
        search.Stored(taken);
        stored += taken;
      } else {
        ++timeouts;
        is_found = search.TimedOut(taken);
      }
    }
    EXPECT_EQ(stored, slow);
    EXPECT_GE(search.count_max(), kCount) << "nothing is looked for any more";
  }
}

}  // namespace
}  // namespace stepwell
