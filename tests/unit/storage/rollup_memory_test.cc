#include "storage/rollup_memory.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

RollupKey Key(std::int32_t series_no, std::int64_t tick_no, std::int32_t step_seconds = 10) {
  return {.ticks = {.trial_id = TrialId{1},
                    .step_seconds = step_seconds,
                    .writer_no = 1,
                    .tick_no = tick_no},
          .series_no = SeriesNo{series_no}};
}

// About 4 kB.
RollupMemory::Shared Column(double value) {
  RollupColumn column;
  column.mins.assign(500, value);
  return std::make_shared<const RollupColumn>(std::move(column));
}

constexpr std::size_t kTwoColumns = 10'000;

TEST(RollupMemoryTest, KeepsWhatWasUsedLastWithinItsBytes) {
  RollupMemory memory(kTwoColumns);
  memory.Note(Key(1, 1), Column(1));
  memory.Note(Key(2, 1), Column(2));
  ASSERT_NE(memory.Find(Key(1, 1)), nullptr);
  memory.Note(Key(3, 1), Column(3));
  EXPECT_EQ(memory.Find(Key(2, 1)), nullptr) << "longest out of use";
  EXPECT_EQ(memory.Find(Key(1, 1))->mins[0], 1);
  EXPECT_EQ(memory.Find(Key(3, 1))->mins[0], 3);
  EXPECT_LE(memory.bytes(), kTwoColumns);
}

TEST(RollupMemoryTest, KnowsASeriesAsLongAsItHoldsARowOfIt) {
  RollupMemory memory(kTwoColumns);
  EXPECT_FALSE(memory.Knows(TrialId{1}, 10, SeriesNo{1}));
  memory.Note(Key(1, 1), Column(1));
  memory.Note(Key(1, 2), Column(2));
  EXPECT_TRUE(memory.Knows(TrialId{1}, 10, SeriesNo{1}));
  EXPECT_FALSE(memory.Knows(TrialId{1}, 60, SeriesNo{1}));
  EXPECT_FALSE(memory.Knows(TrialId{1}, 10, SeriesNo{2}));
  EXPECT_FALSE(memory.Knows(TrialId{2}, 10, SeriesNo{1}));
  memory.Note(Key(2, 1), Column(3));
  EXPECT_TRUE(memory.Knows(TrialId{1}, 10, SeriesNo{1})) << "one of two is left";
  memory.Note(Key(2, 2), Column(4));
  EXPECT_FALSE(memory.Knows(TrialId{1}, 10, SeriesNo{1}));
}

TEST(RollupMemoryTest, TakesNothingTwiceNothingTooLargeAndForgetsAll) {
  RollupMemory memory(5'000);
  memory.Note(Key(1, 1), Column(1));
  const std::size_t bytes = memory.bytes();
  memory.Note(Key(1, 1), Column(2));
  EXPECT_EQ(memory.bytes(), bytes);
  RollupColumn large;
  large.counts.assign(1000, 1);
  memory.Note(Key(1, 2), std::make_shared<const RollupColumn>(large));
  EXPECT_EQ(memory.Find(Key(1, 2)), nullptr);
  EXPECT_EQ(memory.Find(Key(1, 1))->mins[0], 1) << "and it pushes nothing out";
  memory.Clear();
  EXPECT_EQ(memory.bytes(), 0u);
  EXPECT_FALSE(memory.Knows(TrialId{1}, 10, SeriesNo{1}));
  EXPECT_EQ(memory.Find(Key(1, 1)), nullptr);
}

TEST(RollupMemoryTest, EveryPartOfAKeyTellsRowsApart) {
  RollupMemory memory(kTwoColumns);
  memory.Note(Key(1, 1), Column(1));
  const RollupKey key = Key(1, 1);
  EXPECT_EQ(memory.Find(Key(2, 1)), nullptr);
  EXPECT_EQ(memory.Find(Key(1, 2)), nullptr);
  EXPECT_EQ(memory.Find(Key(1, 1, 60)), nullptr);
  RollupKey other = key;
  other.ticks.writer_no = 2;
  EXPECT_EQ(memory.Find(other), nullptr);
  other = key;
  other.ticks.received_day = 1;
  EXPECT_EQ(memory.Find(other), nullptr);
  other = key;
  other.ticks.keep_class = 1;
  EXPECT_EQ(memory.Find(other), nullptr);
  other = key;
  other.ticks.trial_id = TrialId{2};
  EXPECT_EQ(memory.Find(other), nullptr);
}

}  // namespace
}  // namespace stepwell
