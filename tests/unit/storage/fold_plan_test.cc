#include "storage/fold_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/status_macros.h"
#include "storage/merge_plan.h"
#include "storage/stretch.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

constexpr std::int64_t kDayUs = 86'400'000'000;

TickTable Table(std::uint32_t tick_group, std::vector<std::int64_t> times,
                std::vector<double> values) {
  TickTable table;
  table.tick_group = tick_group;
  for (std::size_t i = 0; i < times.size(); ++i) {
    table.batches.push_back(static_cast<std::int32_t>(i));
  }
  table.times_us = std::move(times);
  table.columns.push_back({.series_no = SeriesNo{1}, .values = std::move(values), .presence = {}});
  return table;
}

WriterFold Fold(const std::vector<std::vector<TickTable>>& parts,
                const std::vector<std::int64_t>& received) {
  WriterFold fold;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    fold.parts.push_back({.received_time_us = received[i], .tables = &parts[i]});
  }
  return fold;
}

absl::StatusOr<std::vector<PlannedTicks>> PlanFold(const WriterFold& fold) {
  STEPWELL_ASSIGN_OR_RETURN(FoldPlan plan, stepwell::PlanFold(fold, kNoBulk));
  EXPECT_EQ(plan.bulk.size(), 0u);
  return std::move(plan.recent);
}

TEST(FoldPlanTest, CountsDaysBeforeAndAfter1970) {
  EXPECT_EQ(DayOf(0), 0);
  EXPECT_EQ(DayOf(kDayUs - 1), 0);
  EXPECT_EQ(DayOf(kDayUs), 1);
  EXPECT_EQ(DayOf(-1), -1);
  EXPECT_EQ(DayOf(-kDayUs), -1);
  EXPECT_EQ(DayOf(-kDayUs - 1), -2);
}

TEST(FoldPlanTest, JoinsATickGroupOverPartsAndKeepsGroupsAndDaysApart) {
  const std::vector<std::vector<TickTable>> parts = {
      {Table(1, {1, 2}, {1, 2}), Table(2, {1}, {7})},
      {Table(1, {3}, {3})},
      {Table(1, {4}, {4})},
  };
  const auto plan = PlanFold(Fold(parts, {kDayUs - 5, kDayUs - 9, kDayUs}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 3u);
  const PlannedTicks& joined = plan->at(0);
  EXPECT_EQ(joined.received_day, 0);
  EXPECT_EQ(joined.received_time_us, kDayUs - 9);
  EXPECT_EQ(joined.ticks.tick_group, 1u);
  EXPECT_EQ(joined.ticks.tick_count, 3);
  EXPECT_EQ(*DecodeIntegers(joined.ticks.times, 3), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(*DecodeIntegers(joined.ticks.batches, 3), (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ(*DecodeValues(joined.ticks.columns[0].values, 3), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(plan->at(1).ticks.tick_group, 2u);
  EXPECT_EQ(plan->at(2).received_day, 1);
}

TEST(FoldPlanTest, CountsStatisticsWithoutNan) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  struct Row {
    std::string name;
    std::vector<double> values;
    int nan_count;
    double min, max, sum, last;
  };
  for (const Row& row : std::vector<Row>{
           {"plain", {3, 1, 2}, 0, 1, 3, 6, 2},
           {"NaN at the end", {3, 1, nan}, 1, 1, 3, 4, 1},
           {"NaN first", {nan, nan, -5}, 2, -5, -5, -5, -5},
           {"infinities", {inf, 1, 2}, 0, 1, inf, inf, 2},
       }) {
    SCOPED_TRACE(row.name);
    const auto plan = PlanFold(Fold({{Table(1, {1, 2, 3}, row.values)}}, {0}));
    const EncodedColumn& column = plan->at(0).ticks.columns.at(0);
    EXPECT_EQ(column.sample_count, 3);
    EXPECT_EQ(column.nan_count, row.nan_count);
    EXPECT_EQ(column.min, row.min);
    EXPECT_EQ(column.max, row.max);
    EXPECT_EQ(column.sum, row.sum);
    EXPECT_EQ(column.last, row.last);
    EXPECT_TRUE(column.has_numbers());
  }
  const auto all_nan = PlanFold(Fold({{Table(1, {1, 2}, {nan, nan})}}, {0}));
  EXPECT_FALSE(all_nan->at(0).ticks.columns.at(0).has_numbers());
}

TEST(FoldPlanTest, GivesARowTheRangeOfItsOwnSamples) {
  TickTable table = Table(1, {10, 20, 30, 40}, {1, 2});
  table.columns[0].presence = {0, 1, 1, 0};
  table.batches = {9, -1, 6, 3};
  const auto plan = PlanFold(Fold({{table}}, {0}));
  const EncodedTicks& ticks = plan->at(0).ticks;
  EXPECT_EQ(ticks.first_batch, 3);
  EXPECT_EQ(ticks.last_batch, 9);
  const EncodedColumn& column = ticks.columns.at(0);
  EXPECT_EQ(column.first_time_us, 20);
  EXPECT_EQ(column.last_time_us, 30);
  EXPECT_EQ(column.first_batch, 6);
  EXPECT_EQ(column.last_batch, 6);
  EXPECT_EQ(column.presence.bit_count, 4u);
  EXPECT_EQ(column.presence.bytes, std::string("\x60", 1));
  table.batches = {-1, -1, -1, -1};
  EXPECT_EQ(PlanFold(Fold({{table}}, {0}))->at(0).ticks.columns.at(0).first_batch, -1);
}

TEST(FoldPlanTest, LeavesPresenceOutWhereAStretchHasAllSamples) {
  TickTable table = Table(1, {}, {});
  for (std::size_t i = 0; i < kStretchTicksMax + 10; ++i) {
    table.times_us.push_back(static_cast<std::int64_t>(i));
    table.batches.push_back(0);
    table.columns[0].presence.push_back(i < kStretchTicksMax ? 1 : 0);
    if (i < kStretchTicksMax) table.columns[0].values.push_back(static_cast<double>(i));
  }
  const auto plan = PlanFold(Fold({{table}}, {0}));
  ASSERT_EQ(plan->size(), 1u) << "the second stretch has no sample";
  EXPECT_EQ(plan->at(0).ticks.columns.at(0).presence.bit_count, 0u);
  EXPECT_EQ(plan->at(0).ticks.columns.at(0).sample_count,
            static_cast<std::int32_t>(kStretchTicksMax));
}

TEST(FoldPlanTest, RefusesATableThatContradictsItself) {
  EXPECT_EQ(PlanFold(Fold({{Table(1, {1, 2}, {1})}}, {0})).status().code(),
            absl::StatusCode::kInternal);
}

TickTable LongTable(std::uint32_t tick_group, std::size_t tick_count, std::int64_t start_us) {
  std::vector<std::int64_t> times;
  std::vector<double> values;
  for (std::size_t i = 0; i < tick_count; ++i) {
    times.push_back(start_us + static_cast<std::int64_t>(i) * 1'000'000);
    values.push_back(static_cast<double>(i % 17));
  }
  return Table(tick_group, times, values);
}

TEST(FoldPlanTest, BulkIsWhatHasManyTicksOfOneGroupAndDay) {
  const std::vector<std::vector<TickTable>> halves = {{LongTable(1, kBulkTicks / 2, 0)},
                                                      {LongTable(1, kBulkTicks / 2, kDayUs / 2)}};
  EXPECT_TRUE(HoldsBulk(Fold(halves, {5, 6})));
  EXPECT_FALSE(HoldsBulk(Fold(halves, {kDayUs - 1, kDayUs}))) << "of two days";
  EXPECT_FALSE(HoldsBulk(Fold({{LongTable(1, kBulkTicks - 1, 0)}}, {0})));
  EXPECT_FALSE(
      HoldsBulk(Fold({{LongTable(1, kBulkTicks / 2, 0), LongTable(2, kBulkTicks / 2, 0)}}, {0})));
  EXPECT_FALSE(HoldsBulk(WriterFold()));
}

TEST(FoldPlanTest, OfManySeriesOnDaysOfTheirOwnHasRoomForWhatIsThere) {
  constexpr std::size_t kCount = kBulkTicks;
  TickTable table = Table(1, {}, {});
  table.columns.clear();
  for (std::size_t i = 0; i < kCount; ++i) {
    table.times_us.push_back(static_cast<std::int64_t>(i) * (kSlowStretchSpanUs + 1));
    table.batches.push_back(-1);
    TickColumn& column = table.columns.emplace_back();
    column.series_no = SeriesNo{static_cast<std::int32_t>(i + 1)};
    column.values = {1};
    column.presence.assign(kCount, 0);
    column.presence[i] = 1;
  }
  const auto bulk = stepwell::PlanFold(Fold({{table}}, {0}), kBulkTicks);
  ASSERT_TRUE(bulk.ok()) << bulk.status();
  ASSERT_EQ(bulk->bulk.size(), 1u);
  EXPECT_EQ(bulk->bulk[0].stretches.size(), kCount);
  std::size_t room_of_all = 0;
  for (const MergedStretch& stretch : bulk->bulk[0].stretches) {
    EXPECT_EQ(stretch.ticks.columns.size(), 1u);
    room_of_all += stretch.ticks.columns.capacity() + stretch.rollups[0].series.capacity();
  }
  EXPECT_LE(room_of_all, 8 * kCount) << "not for each series in each stretch";
  const auto waiting = PlanFold(Fold({{table}}, {0}));
  room_of_all = 0;
  for (const PlannedTicks& planned : *waiting) room_of_all += planned.ticks.columns.capacity();
  EXPECT_LE(room_of_all, 4 * kCount);
}

TEST(FoldPlanTest, BulkIsMergedAndTheRestWaits) {
  const std::vector<std::vector<TickTable>> parts = {
      {LongTable(1, 5000, 10'000'000), LongTable(2, 20, 0)}, {LongTable(1, 10, 0)}};
  const WriterFold fold = Fold(parts, {7, 3});
  const auto plan = PlanFold(fold, kBulkTicks);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->recent.size(), 1u);
  EXPECT_EQ(plan->recent[0].ticks.tick_group, 2u);
  ASSERT_EQ(plan->bulk.size(), 1u);
  // As a merge makes them of the rows that a fold of the same would have written.
  const auto waiting = stepwell::PlanFold(fold, kNoBulk);
  std::vector<RecentTicksRow> ticks;
  std::vector<RecentColumnRow> columns;
  for (const PlannedTicks& planned : waiting->recent) {
    if (planned.ticks.tick_group != 1) continue;
    const RowPlace place{.tick_no = static_cast<std::int64_t>(ticks.size())};
    ticks.push_back({.place = place, .recent = {}, .ticks = planned.ticks});
    for (const EncodedColumn& column : planned.ticks.columns) columns.push_back({place, column});
  }
  const auto merged = JoinRecent(ticks, columns);
  const std::vector<MergedStretch>& bulk = plan->bulk[0].stretches;
  ASSERT_EQ(bulk.size(), merged->size());
  for (std::size_t i = 0; i < bulk.size(); ++i) {
    EXPECT_EQ(bulk[i].ticks.times.bits, merged->at(i).ticks.times.bits);
    EXPECT_EQ(bulk[i].ticks.columns.at(0).values.bits,
              merged->at(i).ticks.columns.at(0).values.bits);
    EXPECT_EQ(bulk[i].ticks.columns.at(0).sum, merged->at(i).ticks.columns.at(0).sum);
    EXPECT_EQ(bulk[i].rollups[0].grid.buckets, merged->at(i).rollups[0].grid.buckets);
    EXPECT_EQ(bulk[i].rollups[1].series.size(), merged->at(i).rollups[1].series.size());
  }
}

TEST(FoldPlanTest, OfBulkAtWhichNothingWasMeasuredNothingIsKept) {
  TickTable table = LongTable(1, 2 * kBulkTicks, 0);
  table.columns.clear();
  const auto plan = PlanFold(Fold({{table}}, {0}), kBulkTicks);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->bulk.empty());
  EXPECT_TRUE(plan->recent.empty());
  TickTable wrong = LongTable(1, 2 * kBulkTicks, 0);
  wrong.columns[0].values.pop_back();
  EXPECT_EQ(PlanFold(Fold({{wrong}}, {0}), kBulkTicks).status().code(),
            absl::StatusCode::kInternal);
}

// What a fold wrote, as a merge reads it.
void AddRecent(const std::vector<PlannedTicks>& plan, std::int64_t tick_no,
               std::vector<RecentTicksRow>& ticks, std::vector<RecentColumnRow>& columns) {
  for (const PlannedTicks& planned : plan) {
    const RowPlace place{.tick_no = tick_no++};
    ticks.push_back({.place = place, .recent = {}, .ticks = planned.ticks});
    for (const EncodedColumn& column : planned.ticks.columns) columns.push_back({place, column});
  }
}

TEST(MergePlanTest, JoinsFoldsIntoOneStretchSortedByTime) {
  std::vector<RecentTicksRow> ticks;
  std::vector<RecentColumnRow> columns;
  TickTable later = Table(1, {30, 40}, {3, 4});
  later.columns.push_back({.series_no = SeriesNo{2}, .values = {44}, .presence = {0, 1}});
  AddRecent(*PlanFold(Fold({{later}}, {0})), 1, ticks, columns);
  AddRecent(*PlanFold(Fold({{Table(1, {10, 35}, {1, 3.5})}}, {0})), 2, ticks, columns);
  EXPECT_EQ(SeriesOn(ticks), (std::vector{SeriesNo{1}, SeriesNo{2}}));
  const auto merged = JoinRecent(ticks, columns);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ASSERT_EQ(merged->size(), 1u);
  const EncodedTicks& stretch = merged->at(0).ticks;
  EXPECT_EQ(*DecodeIntegers(stretch.times, 4), (std::vector<std::int64_t>{10, 30, 35, 40}));
  EXPECT_EQ(*DecodeValues(stretch.columns.at(0).values, 4), (std::vector<double>{1, 3, 3.5, 4}));
  EXPECT_EQ(stretch.columns.at(1).sample_count, 1);
  EXPECT_EQ(stretch.columns.at(1).first_time_us, 40);
  // Each step has a rollup of the same series.
  ASSERT_EQ(merged->at(0).rollups.size(), kRollupSteps.size());
  EXPECT_EQ(merged->at(0).rollups[0].grid.step_seconds, 10);
  EXPECT_EQ(merged->at(0).rollups[1].series.at(1).series_no, SeriesNo{2});
  // A slice of the series cuts the same stretches.
  const auto slice = JoinRecent(ticks, {});
  ASSERT_EQ(slice->size(), 1u);
  EXPECT_EQ(slice->at(0).ticks.tick_count, 4);
  EXPECT_TRUE(slice->at(0).ticks.columns.empty());
}

TEST(MergePlanTest, NamesDamage) {
  std::vector<RecentTicksRow> ticks;
  std::vector<RecentColumnRow> columns;
  AddRecent(*PlanFold(Fold({{Table(1, {1, 2, 3}, {1, 2, 4})}}, {0})), 1, ticks, columns);
  auto damaged = columns;
  damaged[0].column.sample_count = 2;
  EXPECT_EQ(JoinRecent(ticks, damaged).status().code(), absl::StatusCode::kDataLoss);
  damaged = columns;
  damaged[0].column.presence = {.bytes = "\xe0", .bit_count = 2};
  EXPECT_EQ(JoinRecent(ticks, damaged).status().code(), absl::StatusCode::kDataLoss);
  auto damaged_ticks = ticks;
  damaged_ticks[0].ticks.tick_count = -1;
  EXPECT_EQ(JoinRecent(damaged_ticks, columns).status().code(), absl::StatusCode::kDataLoss);
  damaged_ticks[0].ticks.tick_count = 4;
  EXPECT_EQ(JoinRecent(damaged_ticks, columns).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace stepwell
