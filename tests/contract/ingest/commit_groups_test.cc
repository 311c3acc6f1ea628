// What one transaction takes of many chunks, and how long one waits for others, with the sizes that a master has: the
// queue, the committer and PostgreSQL together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "server/group_committer.h"
#include "server/memory_shares.h"
#include "server/settings.h"
#include "tests/contract/store_test.h"

namespace stepwell {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::kEpoch;
using ::testing::Le;
using testing::StoreTest;

constexpr std::int64_t kMebibyte = 1 << 20;

// As server.cc makes them of what a master is told by nobody.
CommitQueue::Options MastersOptions() {
  ServeOptions options;
  const Setting& setting = *FindSetting("group-linger");
  EXPECT_FALSE(Set(setting, setting.initial, options));
  return {.queue_bytes_max = DivideMemory({})->of(MemoryShares::kQueue),
          .linger = options.group_linger};
}

// A stream that counts.
class Counter final : public CommitListener {
 public:
  void Committed(const CheckedChunk& chunk) override {
    EXPECT_EQ(chunk.last_sequence, ++committed_);
  }
  void TellAcks() override {}
  void Refenced(const CheckedChunk& /*chunk*/) override { ADD_FAILURE() << "nobody else writes"; }
  void End(const absl::Status& why) override { ADD_FAILURE() << why; }

  std::uint64_t committed() const { return committed_; }

 private:
  std::uint64_t committed_ = 0;
};

class CommitGroupsTest : public StoreTest {
 protected:
  CommitGroupsTest() {
    state_.SetDatabase(absl::OkStatus());
    state_.BecomeOwner(kEpoch, /*recovering=*/false);
    heads_.NoteWriter(writer_.trial_id, writer_.writer_no, 0);
  }

  void Add(std::int64_t bytes) {
    CheckedChunk chunk;
    chunk.listener = counter_;
    chunk.trial_id = writer_.trial_id;
    chunk.writer_no = writer_.writer_no;
    chunk.generation = writer_.generation;
    chunk.attempt = 1;
    chunk.first_sequence = chunk.last_sequence = ++sequence_;
    chunk.journal_entry = std::string(static_cast<std::size_t>(bytes), 'x');
    chunk.bytes = bytes;
    ASSERT_TRUE(queue_.Add(chunk, SteadyTime::Now()).ok());
  }
  // Chunks of each transaction, until all are committed.
  std::vector<std::uint64_t> Groups() {
    std::vector<std::uint64_t> groups;
    for (std::uint64_t before = 0; counter_->committed() < sequence_;) {
      before = counter_->committed();
      EXPECT_TRUE(committer_.CommitNext(SteadyTime::Now()));
      groups.push_back(counter_->committed() - before);
      if (groups.back() == 0) break;
    }
    return groups;
  }
  // What each of the transactions brought into the journal.
  std::vector<std::int64_t> JournalBytes() {
    std::string rows;
    for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
      absl::StrAppend(&rows, i == 0 ? "" : " union all ", "select xmin::text as by, payload from ",
                      "stepwell.journal_", i);
    }
    const auto sums = sql_->Exec(
        SqlOf("select sum(octet_length(payload))::bigint from (" + rows + ") j group by by"));
    EXPECT_TRUE(sums.ok()) << sums.status();
    std::vector<std::int64_t> bytes;
    for (int row = 0; sums.ok() && row < sums->row_count(); ++row) {
      bytes.push_back(sums->Int64(row, 0));
    }
    return bytes;
  }

  const OpenedWriter writer_ = OpenWriter("t");
  const std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  std::uint64_t sequence_ = 0;
  Heads heads_;
  MasterState state_;
  IngestStats stats_;
  CommitQueue queue_{MastersOptions()};
  GroupCommitter committer_{{}, {*ingest_, queue_, heads_, state_, stats_, RealClock::Get()}};
};

TEST_F(CommitGroupsTest, OneTransactionTakesEightMebibytesHoweverMuchWaits) {
  for (int i = 0; i < 20; ++i) Add(kMebibyte);
  EXPECT_THAT(Groups(), ElementsAre(8, 8, 4));
  const std::vector<std::int64_t> bytes = JournalBytes();
  EXPECT_EQ(bytes.size(), 3u);
  EXPECT_THAT(bytes, Each(Le(8 * kMebibyte + 64 * 1024)));
}

// As much as a thousand samples take.
TEST_F(CommitGroupsTest, OneTransactionTakesTwoHundredAndFiftySixChunksHoweverManyWait) {
  for (int i = 0; i < 600; ++i) Add(8 << 10);
  EXPECT_THAT(Groups(), ElementsAre(256, 256, 88));
  EXPECT_EQ(JournalBytes().size(), 3u);
}

TEST_F(CommitGroupsTest, OfSmallChunksItTakesTwoMebibytesAndTwoThousandAtMost) {
  for (int i = 0; i < 3000; ++i) Add(100);
  EXPECT_THAT(Groups(), ElementsAre(2048, 952));
  for (int i = 0; i < 1000; ++i) Add(4 << 10);
  EXPECT_THAT(Groups(), ElementsAre(512, 488));
}

// Promised is an ack within 50 ms: a wait for others takes no more than 20 of them. The shortest of some, for a machine
// may do other things.
TEST_F(CommitGroupsTest, AChunkThatComesAloneWaitsForNoOthers) {
  absl::Duration shortest = absl::InfiniteDuration();
  for (int i = 0; i < 20; ++i) {
    const SteadyTime begin = SteadyTime::Now();
    Add(100);
    EXPECT_TRUE(committer_.CommitNext(SteadyTime::InfiniteFuture()));
    shortest = std::min(shortest, SteadyTime::Now() - begin);
  }
  EXPECT_EQ(counter_->committed(), 20u);
  EXPECT_LE(shortest, absl::Milliseconds(50));
}

}  // namespace
}  // namespace stepwell
