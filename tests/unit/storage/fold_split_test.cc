#include "storage/fold_split.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TickTable Table(std::vector<std::int64_t> times, int columns) {
  TickTable table;
  table.times_us = std::move(times);
  table.batches.assign(table.times_us.size(), -1);
  for (int i = 1; i <= columns; ++i) {
    table.columns.push_back({.series_no = SeriesNo{i},
                             .values = std::vector<double>(table.times_us.size(), 1),
                             .presence = {}});
  }
  return table;
}

const std::vector<TickTable> kTables = {Table({30, 10}, 3), Table({50}, 1)};

WriterFold Fold(int writer_no, std::uint64_t from, std::vector<std::uint64_t> last_sequences) {
  WriterFold fold;
  fold.trial_id = TrialId{7};
  fold.writer_no = WriterNo{writer_no};
  fold.from_sequence_exclusive = from;
  fold.to_sequence = last_sequences.empty() ? from + 1 : last_sequences.back();
  for (const std::uint64_t last : last_sequences) fold.parts.push_back({1, &kTables, last});
  return fold;
}

TEST(FoldSplitTest, HalvesWritersFirst) {
  const auto halves = HalveFolds({Fold(1, 0, {1}), Fold(2, 4, {5, 6}), Fold(3, 0, {1})});
  ASSERT_TRUE(halves);
  ASSERT_EQ(halves->first.size(), 1u);
  ASSERT_EQ(halves->second.size(), 2u);
  EXPECT_EQ(halves->first[0].writer_no, WriterNo{1});
  EXPECT_EQ(halves->second[0].parts.size(), 2u);
}

TEST(FoldSplitTest, HalvesTheChunksOfOneWriterWithoutAHole) {
  WriterFold fold = Fold(2, 4, {5, 8, 9});
  fold.to_sequence = 12;  // 10 to 12 hold no samples
  fold.gaps.resize(1);
  const auto halves = HalveFolds({fold});
  ASSERT_TRUE(halves);
  const WriterFold& first = halves->first.at(0);
  const WriterFold& second = halves->second.at(0);
  EXPECT_EQ(first.from_sequence_exclusive, 4u);
  EXPECT_EQ(first.to_sequence, 5u);
  EXPECT_EQ(first.parts.size(), 1u);
  EXPECT_EQ(second.from_sequence_exclusive, 5u);
  EXPECT_EQ(second.to_sequence, 12u);
  EXPECT_EQ(second.parts.size(), 2u);
  EXPECT_EQ(first.gaps.size() + second.gaps.size(), 1u);
}

TEST(FoldSplitTest, OneChunkStandsAlone) {
  EXPECT_FALSE(HalveFolds({}));
  EXPECT_FALSE(HalveFolds({Fold(1, 0, {})}));
  EXPECT_FALSE(HalveFolds({Fold(1, 0, {3})}));
  EXPECT_FALSE(HalveFolds({Fold(1, 2, {0, 0})})) << "whose parts are of unknown sequences";
}

TEST(FoldSplitTest, WhatIsGivenUpIsAGapOfItsSamplesTimesAndSequences) {
  WriterFold fold = Fold(2, 4, {5, 8});
  fold.gaps.resize(1);
  const WriterFold given_up = GiveUp(fold);
  EXPECT_EQ(given_up.from_sequence_exclusive, 4u);
  EXPECT_EQ(given_up.to_sequence, 8u);
  EXPECT_TRUE(given_up.parts.empty());
  ASSERT_EQ(given_up.gaps.size(), 2u) << "and the one that it had";
  const Gap& gap = given_up.gaps[1];
  EXPECT_EQ(gap.writer_no, WriterNo{2});
  EXPECT_EQ(gap.cause, GapCause::kRejected);
  EXPECT_EQ(gap.sample_count, 2 * (3 * 2 + 1));
  EXPECT_EQ(gap.first_time_us, 10);
  EXPECT_EQ(gap.last_time_us, 50);
  EXPECT_EQ(gap.first_sequence, 5u);
  EXPECT_EQ(gap.last_sequence, 8u);
}

}  // namespace
}  // namespace stepwell
