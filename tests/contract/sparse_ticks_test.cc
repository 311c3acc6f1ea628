// Ticks over a day apart: each is a row of its own in recent_ticks, and in ticks, with rollups of its own. However many
// of them one writer and tick group brings, a merge takes so many at a time, and keeps nobody else waiting.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::kEpoch;
using testing::kNowUs;
using testing::RollupMismatchSql;
using testing::Rollups;
using testing::Samples;

constexpr std::int64_t kHourUs = 3'600'000'000;

class SparseTicks : public CapsStoreTest {
 protected:
  // As many chunks as there are folds, 25 hours between ticks.
  void FillDays(const OpenedWriter& writer, int series_count, int chunk_count,
                int ticks_per_chunk) {
    for (int chunk = 0; chunk < chunk_count; ++chunk) {
      TickTable table = Table(series_count, ticks_per_chunk);
      for (std::size_t i = 0; i < table.times_us.size(); ++i) {
        table.times_us[i] = (chunk * ticks_per_chunk + static_cast<std::int64_t>(i)) * 25 * kHourUs;
      }
      FillAndCount(writer, {table});
    }
  }
  void FillAndCount(const OpenedWriter& writer, const std::vector<TickTable>& tables) {
    Fill(writer, tables);
    Count(writer, tables, expected_);
  }
  std::int64_t WaitingOf(const OpenedWriter& writer) {
    return Number(absl::StrCat("select count(*) from stepwell.recent_ticks where trial_id = ",
                               Value(writer.trial_id)));
  }

  Samples expected_;
};

TEST_F(SparseTicks, AreMergedSoManyAtATimeAndHoldUpNobody) {
  const OpenedWriter sparse = OpenWriter("sparse"), dense = OpenWriter("dense");
  AddSeries(sparse.trial_id, 2);
  AddSeries(dense.trial_id, 1);
  const FoldNo pin = Newest();
  FillDays(sparse, 2, 20, 250);
  const std::vector<TickTable> later = {Table(1, 100)};
  Fill(dense, later, kNowUs + 1);
  Count(dense, later, expected_);
  ASSERT_EQ(WaitingOf(sparse), 5000);
  MergeLimits limits{.fold_no_max = pin, .ripe_tick_count = 1, .now_us = kNowUs, .rows_max = 2000};
  EXPECT_EQ(MergeAll(limits), 0) << "somebody reads it";

  limits.fold_no_max = Newest();
  int calls = 0;
  std::int64_t dense_is_left = 1;
  for (bool more = true; more; ++calls) {
    ASSERT_LT(calls, 100);
    const auto merged = folds_->Merge(kEpoch, limits);
    ASSERT_TRUE(merged.ok()) << merged.status();
    more = merged->more;
    // A series on so many ticks, and what was begun before there was room for no more.
    EXPECT_LE(merged->recent_rows_taken, 2 * limits.rows_max);
    EXPECT_LE(merged->metrics_rows_made, 2 * limits.rows_max);
    if (dense_is_left > 0 && WaitingOf(dense) == 0) {
      dense_is_left = 0;
      EXPECT_GT(WaitingOf(sparse), 0) << "it came later, and went sooner";
    }
  }
  EXPECT_EQ(dense_is_left, 0);
  EXPECT_GE(calls, 6);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.recent_ticks"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 5001);
  // A recount of rollups, which the next test asks for, would take a minute of so many rows.
  EXPECT_EQ(ReadSamples(), expected_);
  ExpectUsageAddsUp();
  ExpectNothingVanished();
}

// The oldest go first, rows of ticks and of values alike; no fold is parted from what it wrote.
TEST_F(SparseTicks, OfWhichSomeAreMergedAreReadOnce) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 3);
  FillDays(writer, 3, 4, 10);
  const MergeLimits limits{.fold_no_max = Newest(),
                           .ripe_tick_count = 1,
                           .now_us = kNowUs,
                           .rows_max = 20,
                           .ticks_rows_max = 7};
  for (std::int64_t left = 40; left > 0;) {
    const auto merged = folds_->Merge(kEpoch, limits);
    ASSERT_TRUE(merged.ok()) << merged.status();
    ASSERT_GT(merged->recent_rows_taken, 0);
    EXPECT_EQ(ReadSamples(), expected_);
    left = WaitingOf(writer);
    ASSERT_TRUE(merged->more || left == 0);
    if (left % 3 == 0) Reopen();  // another master goes on with what is there
  }
  MergeAll(limits);
  EXPECT_EQ(ReadSamples(), expected_);
  EXPECT_EQ(Text(RollupMismatchSql(Rollups::kExact)), "");
  ExpectNothingVanished();
}

// What is cut for its rows is cut between folds' ticks of one hour only where there are very many.
TEST_F(SparseTicks, OfAnOrdinaryHourBecomeOneRow) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  for (int fold = 0; fold < 360; ++fold) {
    FillAndCount(writer, {Table(2, 10, kNowUs + fold * std::int64_t{10'000'000})});
  }
  MergeNow();
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 2);
  EXPECT_EQ(ReadSamples(), expected_);
}

}  // namespace
}  // namespace stepwell
