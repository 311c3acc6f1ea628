#include "server/commit_group.h"
#include "base/steady_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/worker.h"
#include "server/credit_plan.h"
#include "server/ingest_session.h"
#include "server/trial_state.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;

CheckedChunk Chunk(int writer, std::uint64_t first, std::uint64_t last,
                   std::uint64_t generation = 1) {
  CheckedChunk chunk;
  chunk.trial_id = static_cast<TrialId>(1);
  chunk.writer_no = static_cast<WriterNo>(writer);
  chunk.generation = generation;
  chunk.first_sequence = first;
  chunk.last_sequence = last;
  chunk.crc32c = static_cast<std::uint32_t>(last);
  chunk.bytes = 100;
  return chunk;
}

void Add(CommitQueue& queue, CheckedChunk chunk) {
  ASSERT_TRUE(queue.Add(chunk, SteadyTime::Now() + absl::Seconds(5)).ok());
}

TEST(CommitQueueTest, AGroupHoldsOneContiguousRunPerWriter) {
  CommitQueue queue({});
  Add(queue, Chunk(1, 1, 1));
  Add(queue, Chunk(2, 5, 9));
  Add(queue, Chunk(1, 2, 2));
  Add(queue, Chunk(1, 3, 3, 2));  // a new generation: for the next group
  Add(queue, Chunk(1, 4, 4, 2));
  Add(queue, Chunk(2, 10, 10));
  const auto first = queue.Take(SteadyTime::Now());
  ASSERT_EQ(first.size(), 4U);
  const CommitGroup group = BuildGroup(first, 7, 1234);
  ASSERT_EQ(group.request.advances.size(), 2U);
  EXPECT_EQ(group.request.owner_epoch, 7);
  EXPECT_EQ(group.request.advances[0].last_sequence, 2U);
  EXPECT_EQ(group.request.advances[0].last_crc32c, 2U);
  EXPECT_EQ(group.request.advances[1].first_sequence, 5U);
  EXPECT_EQ(group.request.advances[1].last_sequence, 10U);
  EXPECT_EQ(group.advance_of, (std::vector<std::size_t>{0, 1, 0, 1}));
  const auto second = queue.Take(SteadyTime::Now());
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(BuildGroup(second, 7, 1235).request.advances[0].generation, 2U);
  EXPECT_EQ(queue.bytes(), 0);
}

TEST(CommitQueueTest, ACloseIsTheLastOfItsWriter) {
  CommitQueue queue({});
  Add(queue, Chunk(1, 1, 1));
  CheckedChunk close = Chunk(1, 2, 1);
  close.closing = WriterState::kClosed;
  Add(queue, close);
  const CommitGroup group = BuildGroup(queue.Take(SteadyTime::Now()), 1, 1);
  ASSERT_EQ(group.request.advances.size(), 1U);
  EXPECT_EQ(group.request.advances[0].last_sequence, 1U);
  EXPECT_EQ(group.request.advances[0].last_crc32c, 1U);
  EXPECT_EQ(group.request.advances[0].closing, WriterState::kClosed);
}

TEST(CommitQueueTest, ClosesAtItsCountAndBytes) {
  CommitQueue queue({.chunk_count_max = 3, .group_bytes_max = 250});
  for (std::uint64_t i = 1; i <= 6; ++i) Add(queue, Chunk(static_cast<int>(i), 1, 1));
  EXPECT_EQ(queue.Take(SteadyTime::Now()).size(), 2U);
  CommitQueue counted({.chunk_count_max = 3});
  for (std::uint64_t i = 1; i <= 6; ++i) Add(counted, Chunk(static_cast<int>(i), 1, 1));
  EXPECT_EQ(counted.Take(SteadyTime::Now()).size(), 3U);
}

// A crowd of one gap each is no more groups than it was; a flood of them is.
TEST(CommitQueueTest, AGroupHasSoManyGapsOrOneChunk) {
  CommitQueue queue({.gap_count_max = 100});
  const auto with_gaps = [](int writer, std::uint64_t sequence, std::size_t count) {
    CheckedChunk chunk = Chunk(writer, sequence, sequence);
    chunk.gaps.resize(count);
    return chunk;
  };
  for (int i = 1; i <= 100; ++i) Add(queue, with_gaps(i, 1, 1));
  Add(queue, Chunk(1, 2, 2));
  Add(queue, with_gaps(2, 2, 1));
  Add(queue, with_gaps(3, 2, 1000));
  Add(queue, Chunk(4, 2, 2));
  for (const std::size_t count : {101, 1, 1, 1}) {
    EXPECT_EQ(queue.Take(SteadyTime::Now()).size(), count);
  }
}

TEST(CommitQueueTest, WhatIsPutBackComesFirst) {
  CommitQueue queue({});
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    Add(queue, Chunk(1, sequence, sequence));
  }
  std::vector<CheckedChunk> taken = queue.Take(SteadyTime::Now(), 3);
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(queue.bytes(), 100);
  queue.PutBack(std::move(taken));
  EXPECT_EQ(queue.bytes(), 400);
  const auto again = queue.Take(SteadyTime::Now());
  ASSERT_EQ(again.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(again[i].first_sequence, i + 1);
}

// Of a trial that is slow, and of others.
class AsideTest : public ::testing::Test {
 protected:
  void AddOf(int trial, std::uint64_t sequence, int writer = 1) {
    CheckedChunk chunk = Chunk(writer, sequence, sequence);
    chunk.trial_id = static_cast<TrialId>(trial);
    Add(queue_, std::move(chunk));
  }
  // "trial/writer/sequence" of each.
  std::vector<std::string> Take() {
    std::vector<std::string> taken;
    taken_ = queue_.Take(SteadyTime::Now());
    for (const CheckedChunk& chunk : taken_) {
      taken.push_back(absl::StrCat(Value(chunk.trial_id), "/", Value(chunk.writer_no), "/",
                                   chunk.first_sequence));
    }
    return taken;
  }
  // What was taken last, which is one.
  void SetAside(absl::Duration rest) {
    ASSERT_EQ(taken_.size(), 1U);
    queue_.SetAside(std::move(taken_[0]), SteadyTime::Now() + rest);
  }
  void SetAsideOf(int trial, absl::Duration rest) {
    AddOf(trial, 1);
    ASSERT_THAT(Take(), ElementsAre(absl::StrCat(trial, "/1/1")));
    SetAside(rest);
  }

  CommitQueue queue_{{}};
  std::vector<CheckedChunk> taken_;
};

TEST_F(AsideTest, ItsTrialRestsAndNobodyElse) {
  SetAsideOf(1, absl::Hours(1));
  AddOf(1, 2);
  AddOf(1, 1, /*writer=*/2);
  AddOf(2, 1);
  EXPECT_EQ(queue_.bytes(), 400);
  EXPECT_THAT(Take(), ElementsAre("2/1/1"));
  EXPECT_THAT(Take(), ElementsAre()) << "others send, so it rests";
  EXPECT_EQ(queue_.Clear().size(), 3U) << "nothing is left out";
  EXPECT_EQ(queue_.bytes(), 0);
  AddOf(1, 1);
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
}

TEST_F(AsideTest, ItComesFirstAndAloneAfterItsRestAndAGroupOfOthers) {
  SetAsideOf(1, absl::ZeroDuration());
  AddOf(2, 1);
  AddOf(1, 2);
  EXPECT_THAT(Take(), ElementsAre("2/1/1"));
  AddOf(2, 2);
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
  EXPECT_THAT(Take(), ElementsAre("1/1/2", "2/1/2"));
}

TEST_F(AsideTest, WhereNobodyElseSendsItRestsNot) {
  SetAsideOf(1, absl::Hours(1));
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
  SetAside(absl::Hours(1));
  AddOf(1, 2);
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
  EXPECT_THAT(Take(), ElementsAre("1/1/2"));
}

TEST_F(AsideTest, BetweenTwoThatAreTriedOthersHaveAGroup) {
  SetAsideOf(1, absl::ZeroDuration());
  AddOf(3, 1);
  AddOf(2, 1);
  EXPECT_THAT(Take(), ElementsAre("3/1/1", "2/1/1"));
  queue_.SetAside(std::move(taken_[1]), SteadyTime::Now());
  AddOf(3, 2);
  EXPECT_THAT(Take(), ElementsAre("3/1/2"));
  AddOf(3, 3);
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
  EXPECT_THAT(Take(), ElementsAre("3/1/3"));
  AddOf(3, 4);
  EXPECT_THAT(Take(), ElementsAre("2/1/1"));
  EXPECT_THAT(Take(), ElementsAre("3/1/4"));
}

TEST_F(AsideTest, WhatPassedEndsTheRestOfAll) {
  SetAsideOf(1, absl::Hours(1));
  AddOf(3, 1);
  EXPECT_THAT(Take(), ElementsAre("3/1/1"));
  EXPECT_THAT(Take(), ElementsAre());
  queue_.EndRests();
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
}

TEST_F(AsideTest, AtTheEndOthersComeFirst) {
  SetAsideOf(1, absl::Hours(1));
  AddOf(1, 2);
  AddOf(2, 1);
  AddOf(2, 2, /*writer=*/7);
  queue_.Close();
  EXPECT_THAT(Take(), ElementsAre("2/1/1", "2/7/2"));
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
  SetAside(absl::Hours(1));
  EXPECT_THAT(Take(), ElementsAre("1/1/1"));
  EXPECT_THAT(Take(), ElementsAre("1/1/2"));
  EXPECT_THAT(Take(), ElementsAre());
}

TEST(CommitQueueTest, IsBoundedAndLeavesTheChunkWhereItIsFull) {
  CommitQueue queue({.queue_bytes_max = 150});
  Add(queue, Chunk(1, 1, 1));
  CheckedChunk second = Chunk(1, 2, 2);
  second.journal_entry = "kept";
  EXPECT_EQ(queue.Add(second, SteadyTime::Now()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second.journal_entry, "kept");
  Worker taker("taker", [&] { queue.Take(SteadyTime::InfiniteFuture()); });
  EXPECT_TRUE(queue.Add(second, SteadyTime::Now() + absl::Seconds(10)).ok());
  queue.Close();
  CheckedChunk third = Chunk(1, 3, 3);
  EXPECT_EQ(queue.Add(third, SteadyTime::InfiniteFuture()).code(), absl::StatusCode::kUnavailable);
}

TEST(CommitQueueTest, PlacesTakeOfItsRoomAndAreUsedUpOrGivenBack) {
  CommitQueue queue({.queue_bytes_max = 250});
  Add(queue, Chunk(1, 1, 1));
  auto place = queue.Hold(1000, SteadyTime::Now());
  ASSERT_TRUE(place.ok()) << "there was room left";
  // Full for those with places and those without.
  EXPECT_EQ(queue.Hold(1, SteadyTime::Now()).status().code(), absl::StatusCode::kResourceExhausted);
  CheckedChunk other = Chunk(2, 1, 1);
  EXPECT_EQ(queue.Add(other, SteadyTime::Now()).code(), absl::StatusCode::kResourceExhausted);
  CheckedChunk second = Chunk(1, 2, 2);
  EXPECT_TRUE(queue.Add(second, SteadyTime::Now(), &*place).ok());
  EXPECT_EQ(queue.bytes(), 200);
  // Once: what it held is free again, and nothing is given back behind it.
  CheckedChunk third = Chunk(1, 3, 3);
  EXPECT_EQ(queue.Add(third, SteadyTime::Now(), &*place).code(),
            absl::StatusCode::kResourceExhausted);
  {
    auto last = queue.Hold(50, SteadyTime::Now());
    ASSERT_TRUE(last.ok());
    *place = *std::move(last);
    EXPECT_FALSE(queue.Hold(1, SteadyTime::Now()).ok());
    *place = {};
  }
  EXPECT_TRUE(queue.Hold(1, SteadyTime::Now()).ok());
  auto waits = queue.Hold(50, SteadyTime::Now());
  ASSERT_TRUE(waits.ok());
  Worker taker("taker", [&] { queue.Take(SteadyTime::InfiniteFuture()); });
  EXPECT_TRUE(queue.Hold(50, SteadyTime::Now() + absl::Seconds(10)).ok());
  queue.Close();
  EXPECT_EQ(queue.Hold(1, SteadyTime::InfiniteFuture()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(queue.Add(third, SteadyTime::InfiniteFuture(), &*waits).code(),
            absl::StatusCode::kUnavailable);
}

TEST(CommitQueueTest, WhatGoesInComesOutOnceAndInOrder) {
  std::mt19937_64 random(TestSeed());
  CommitQueue queue({.chunk_count_max = 16, .queue_bytes_max = 5000});
  constexpr int kWriters = 4;
  constexpr std::uint64_t kChunks = 500;
  std::vector<Worker> writers;
  for (int writer = 1; writer <= kWriters; ++writer) {
    writers.emplace_back("writer", [&queue, writer] {
      for (std::uint64_t i = 1; i <= kChunks; ++i) Add(queue, Chunk(writer, i, i, 1 + i / 50));
    });
  }
  std::map<int, std::uint64_t> next;
  for (std::uint64_t taken = 0; taken < kWriters * kChunks;) {
    const auto chunks = queue.Take(SteadyTime::Now() + absl::Seconds(10));
    ASSERT_FALSE(chunks.empty());
    BuildGroup(chunks, 1, 1);  // checks that runs are contiguous
    for (const CheckedChunk& chunk : chunks) {
      EXPECT_EQ(chunk.first_sequence, ++next[Value(chunk.writer_no)]);
    }
    taken += chunks.size();
  }
  EXPECT_EQ(queue.bytes(), 0);
}

OpenedWriter Opened(std::uint64_t committed) {
  OpenedWriter opened;
  opened.generation = 1;
  opened.committed_sequence = committed;
  return opened;
}

TEST(IngestSessionTest, TakesTheNextRepeatsTheOldRefusesHoles) {
  IngestSession session(Opened(4), {});
  struct Row {
    std::uint64_t first, last;
    Offered::Kind kind;
    std::uint64_t from;
  };
  for (const Row& row :
       {Row{4, 4, Offered::kRepeat, 0}, Row{6, 6, Offered::kHole, 0}, Row{5, 5, Offered::kTake, 5},
        Row{5, 5, Offered::kRepeat, 0}, Row{3, 8, Offered::kTake, 6},
        Row{10, 12, Offered::kHole, 0}, Row{9, 9, Offered::kTake, 9}}) {
    SCOPED_TRACE(row.first);
    const Offered offered = session.Offer(row.first, row.last);
    EXPECT_EQ(offered.kind, row.kind);
    EXPECT_EQ(offered.first_sequence, row.from);
  }
  EXPECT_EQ(session.next_sequence(), 10U);
}

TEST(IngestSessionTest, AFencedOneTakesNothing) {
  IngestSession session(Opened(0), {});
  session.Fenced();
  EXPECT_EQ(session.Offer(1, 1).kind, Offered::kEnded);
}

TEST(IngestSessionTest, CloseComesAfterTheLastSequence) {
  IngestSession session(Opened(0), {});
  session.Offer(1, 3);
  EXPECT_EQ(session.OfferClose(4)->reason, "SEQUENCE_HOLE");
  EXPECT_EQ(session.OfferClose(2)->reason, "FINAL_SEQUENCE");
  EXPECT_EQ(session.state(), IngestSession::State::kOpen);
  EXPECT_FALSE(session.OfferClose(3).has_value());
  EXPECT_EQ(session.state(), IngestSession::State::kClosing);
  EXPECT_EQ(session.Offer(3, 3).kind, Offered::kRepeat);
  EXPECT_EQ(session.Offer(4, 4).kind, Offered::kEnded);
}

TEST(CreditPlanTest, FollowsTheLoad) {
  constexpr std::int64_t kMiB = 1 << 20;
  struct Row {
    const char* name;
    CreditLoad load;
    std::int64_t credit;
  };
  for (const Row& row : {
           Row{"alone", {.writer_count = 1}, kCreditBytesMax},
           Row{"many", {.writer_count = 64}, kCreditBytesMin},
           Row{"some", {.writer_count = 16}, 4 * kMiB},
           Row{"down", {.may_take = false}, 0},
           Row{"queue full", {.queue_bytes = 64 * kMiB}, 0},
           Row{"heads full", {.unfolded_bytes = 256 * kMiB}, 0},
           Row{"heads half full", {.unfolded_bytes = 128 * kMiB}, kCreditBytesMax},
           Row{"heads nearly full",
               {.unfolded_bytes = 255 * kMiB, .writer_count = 16},
               kCreditBytesMin},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(PlanCredit(row.load), row.credit);
  }
}

TEST(TrialStateTest, FollowsItsWriters) {
  const SteadyTime now = SteadyTime::Now();
  const WriterFact fresh{WriterState::kOpen, now - absl::Seconds(59)};
  const WriterFact silent{WriterState::kOpen, now - absl::Seconds(61)};
  const WriterFact closed{WriterState::kClosed, {}};
  const WriterFact died{WriterState::kDied, {}};
  struct Row {
    const char* name;
    std::vector<WriterFact> writers;
    TrialState state;
  };
  for (const Row& row : {Row{"one lives", {silent, died, fresh}, TrialState::kRunning},
                         Row{"one is silent", {silent, died}, TrialState::kLost},
                         Row{"one died", {closed, died}, TrialState::kFailed},
                         Row{"all closed", {closed, closed}, TrialState::kCompleted}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(DeriveTrialState(row.writers, now), row.state);
  }
}

}  // namespace
}  // namespace stepwell
