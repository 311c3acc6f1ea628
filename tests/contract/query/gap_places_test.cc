// Between which batches declared gaps lie, in answers over batches: whatever lies in heads, in recent rows or in
// merged ones, as a plain list of the writers' ticks says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/batches_around.h"
#include "tests/contract/query/query_reads_fixture.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

class GapPlaces : public QueryReadsTest {
 protected:
  struct Rank {
    Feed feed;
    std::int32_t series_no = 0;
    std::int32_t batch = -1;
    std::vector<TickBatch> ticks = {};
  };

  Rank Open(std::int32_t rank) {
    return {.feed = OpenWriter("job", false, rank),
            .series_no = AddSeries("timing", "step", SeriesKind::kDuration,
                                   {{"agent", "node"}, {"rank", absl::StrCat(rank)}})};
  }

  // A chunk of `count` steps from `time_us` on, `step_us` apart; every eighth is of no batch.
  void Send(Rank& rank, std::int64_t time_us, int count, std::int64_t step_us,
            std::vector<Gap> gaps = {}) {
    TickTable table;
    table.tick_group = 1;
    for (int i = 0; i < count; ++i) {
      const bool has_batch = ++rank.batch % 8 != 7;
      table.times_us.push_back(time_us + i * step_us);
      table.batches.push_back(has_batch ? rank.batch : -1);
      if (has_batch) rank.ticks.push_back({table.times_us.back(), rank.batch});
    }
    table.columns.push_back({.series_no = SeriesNo{rank.series_no},
                             .values = std::vector<double>(static_cast<std::size_t>(count), 0.5),
                             .presence = {}});
    Commit(rank.feed, {std::move(table)}, kStartUs + (rank.batch % 3 == 0 ? kDayUs : 0),
           std::move(gaps));
  }

  static Gap Lost(const Rank& rank, std::int64_t first_us, std::int64_t last_us) {
    return {.writer_no = rank.feed.opened.writer_no,
            .cause = GapCause::kRingFull,
            .metric_group = "timing",
            .sample_count = 5,
            .first_time_us = first_us,
            .last_time_us = last_us,
            .first_sequence = 0,
            .last_sequence = 0,
            .reason = absl::StrCat("lost at ", first_us)};
  }

  v1::Completeness Ask(std::int32_t start = 0, std::int32_t end = 0) {
    v1::QueryBucketsRequest request;
    *request.mutable_trial() = Ref();
    request.mutable_batch_range()->set_start_batch(start);
    request.mutable_batch_range()->set_end_batch(end);
    const auto answer = reads_.QueryBuckets(request, Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->completeness() : v1::Completeness();
  }

  // Where more than three stored stretches of ticks lie over each other a gap may be told as too wide, or an end of
  // it not at all; never as too narrow (Gap.batch_before). How often that was so is counted.
  void Expect(const v1::Completeness& completeness,
              const std::map<std::int32_t, const Rank*>& ranks) {
    for (const v1::Gap& gap : completeness.gaps()) {
      SCOPED_TRACE(gap.ShortDebugString());
      const TickBatch* before = nullptr;
      const TickBatch* after = nullptr;
      for (const TickBatch& tick : ranks.at(gap.writer_no())->ticks) {
        if (tick.time_us <= gap.first_time_us()) before = &tick;
        if (tick.time_us >= gap.last_time_us() && after == nullptr) after = &tick;
      }
      const bool is_exact = gap.has_batch_before() == (before != nullptr) &&
                            gap.has_batch_after() == (after != nullptr) &&
                            gap.batch_before() == (before == nullptr ? 0 : before->batch) &&
                            gap.batch_after() == (after == nullptr ? 0 : after->batch);
      ++told_count_;
      if (is_exact) continue;
      ++wide_count_;
      if (gap.has_batch_before()) {
        ASSERT_NE(before, nullptr);
        ASSERT_LE(gap.batch_before(), before->batch);
      }
      if (gap.has_batch_after()) {
        ASSERT_NE(after, nullptr);
        ASSERT_GE(gap.batch_after(), after->batch);
      }
    }
  }

  int told_count_ = 0;
  int wide_count_ = 0;
};

TEST_F(GapPlaces, AreThoseOfTheWritersTicksWhereverTheyLie) {
  std::mt19937_64 random(testing::TestSeed());
  Rank ranks[] = {Open(0), Open(1)};
  const std::map<std::int32_t, const Rank*> by_writer = {
      {Value(ranks[0].feed.opened.writer_no), &ranks[0]},
      {Value(ranks[1].feed.opened.writer_no), &ranks[1]}};
  std::int64_t time_us = kStartUs;
  int gap_count = 0;
  for (int round = 0; round < 60; ++round) {
    Rank& rank = ranks[random() % 2];
    const std::int64_t lost_us = time_us;
    std::vector<Gap> gaps;
    if (random() % 3 == 0) {
      // Sometimes with ticks of the other one, and far longer than what is told missing.
      time_us += static_cast<std::int64_t>(random() % 120'000'000);
      rank.batch += static_cast<std::int32_t>(random() % 50);
      gaps = {Lost(rank, lost_us, time_us)};
      ++gap_count;
    }
    const int count = 1 + static_cast<int>(random() % 40);
    Send(rank, time_us + 1, count, 500'000, std::move(gaps));
    time_us += count * 500'000;
    if (random() % 4 == 0) random() % 2 == 0 ? FoldBulk() : Fold();
    if (random() % 8 == 0) Merge(1);
    if (random() % 4 != 0) continue;
    const v1::Completeness told = Ask();
    ASSERT_EQ(told.gaps_size(), gap_count);
    ASSERT_NO_FATAL_FAILURE(Expect(told, by_writer));
    // A closer look knows them, too.
    ASSERT_NO_FATAL_FAILURE(Expect(Ask(10, 20), by_writer));
  }
  EXPECT_GT(gap_count, 5);
  // Of 60 seeds two had any.
  EXPECT_LE(wide_count_ * 5, told_count_);
}

TEST_F(GapPlaces, ComparisonsTellThemByBatchAndNobodyByTime) {
  Rank rank = Open(0);
  Send(rank, kStartUs, 5, 1'000'000);
  Send(rank, kStartUs + 60'000'000, 5, 1'000'000,
       {Lost(rank, kStartUs + 5'000'000, kStartUs + 59'000'000)});
  Fold();
  v1::CompareTrialsRequest request;
  *request.add_trials() = Ref();
  Turn("other");
  Rank other = Open(0);
  Send(other, kStartUs, 5, 1'000'000);
  *request.add_trials() = Ref("other");
  request.set_axis(v1::COMPARE_AXIS_BATCH);
  const auto by_batch = reads_.CompareTrials(request, Call());
  ASSERT_TRUE(by_batch.ok()) << by_batch.status();
  ASSERT_EQ(by_batch->trials(0).completeness().gaps_size(), 1);
  EXPECT_EQ(by_batch->trials(0).completeness().gaps(0).batch_before(), 4);
  EXPECT_EQ(by_batch->trials(0).completeness().gaps(0).batch_after(), 5);
  request.set_axis(v1::COMPARE_AXIS_TIME_SINCE_START);
  const auto by_time = reads_.CompareTrials(request, Call());
  ASSERT_TRUE(by_time.ok()) << by_time.status();
  ASSERT_EQ(by_time->trials(0).completeness().gaps_size(), 1);
  EXPECT_FALSE(by_time->trials(0).completeness().gaps(0).has_batch_before());
  EXPECT_FALSE(by_time->trials(0).completeness().gaps(0).has_batch_after());
}

}  // namespace
}  // namespace stepwell
