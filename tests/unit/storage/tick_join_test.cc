#include "storage/tick_join.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TickTable Table(std::vector<std::int64_t> times, std::vector<TickColumn> columns) {
  TickTable table;
  table.tick_group = 3;
  table.batches.assign(times.size(), 7);
  table.times_us = std::move(times);
  table.columns = std::move(columns);
  return table;
}

TickColumn Column(int series_no, std::vector<double> values,
                  std::vector<std::uint8_t> presence = {}) {
  return {.series_no = SeriesNo{series_no},
          .values = std::move(values),
          .presence = std::move(presence)};
}

TEST(TickJoinTest, JoinsTablesOfTheSameColumns) {
  TickJoin join;
  ASSERT_TRUE(join.Add(Table({1, 2}, {Column(1, {10, 20}), Column(2, {11, 21})})).ok());
  ASSERT_TRUE(join.Add(Table({3}, {Column(1, {30}), Column(2, {31})})).ok());
  const TickTable all = join.Take();
  EXPECT_EQ(all.tick_group, 3u);
  EXPECT_EQ(all.times_us, (std::vector<std::int64_t>{1, 2, 3}));
  ASSERT_EQ(all.columns.size(), 2u);
  EXPECT_EQ(all.columns[0].values, (std::vector<double>{10, 20, 30}));
  EXPECT_TRUE(all.columns[0].presence.empty());
  EXPECT_EQ(all.columns[1].values, (std::vector<double>{11, 21, 31}));
  EXPECT_EQ(join.tick_count(), 0u);
}

TEST(TickJoinTest, WhatIsExpectedIsRoomAndNothingElse) {
  TickJoin join;
  join.Expect(3, 2);
  for (std::int64_t tick = 1; tick <= 5; ++tick) {
    ASSERT_TRUE(join.Add(Table({tick}, {Column(static_cast<int>(tick % 2), {1.0})})).ok());
  }
  const TickTable all = join.Take();
  EXPECT_EQ(all.times_us.size(), 5u);
  ASSERT_EQ(all.columns.size(), 2u);
  EXPECT_EQ(all.columns[0].presence, (std::vector<std::uint8_t>{1, 0, 1, 0, 1}));
  EXPECT_EQ(all.columns[1].values, (std::vector<double>{1, 1}));
}

// Many series of few ticks each: room for all ticks in each column would be their product.
TEST(TickJoinTest, RoomIsBoundedByTheValues) {
  constexpr int kSeries = 1000;
  TickJoin join;
  join.Expect(kSeries, kSeries);
  for (int i = 1; i <= kSeries; ++i) ASSERT_TRUE(join.Add(Table({i}, {Column(i, {1.0})})).ok());
  std::size_t room = 0;
  for (const TickColumn& column : join.Take().columns) room += column.values.capacity();
  EXPECT_LE(room, 4u * kSeries);
}

TEST(TickJoinTest, MarksWhatComesLateGoesEarlyOrMisses) {
  TickJoin join;
  ASSERT_TRUE(join.Add(Table({1, 2}, {Column(1, {10, 20}), Column(2, {21}, {0, 1})})).ok());
  ASSERT_TRUE(join.Add(Table({3, 4}, {Column(3, {33, 43}), Column(2, {31, 41})})).ok());
  const TickTable all = join.Take();
  ASSERT_EQ(all.columns.size(), 3u);
  EXPECT_EQ(all.columns[0].presence, (std::vector<std::uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(all.columns[1].presence, (std::vector<std::uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(all.columns[1].values, (std::vector<double>{21, 31, 41}));
  EXPECT_EQ(all.columns[2].presence, (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(all.columns[2].values, (std::vector<double>{33, 43}));
}

TEST(TickJoinTest, SortsByTimeAndKeepsTheOrderOfEqualTimes) {
  TickJoin join;
  ASSERT_TRUE(join.Add(Table({50, 30}, {Column(1, {5, 3}), Column(2, {30}, {0, 1})})).ok());
  ASSERT_TRUE(join.Add(Table({40, 30}, {Column(1, {4, 3.5}), Column(2, {40}, {1, 0})})).ok());
  const TickTable all = join.Take();
  EXPECT_EQ(all.times_us, (std::vector<std::int64_t>{30, 30, 40, 50}));
  EXPECT_EQ(all.columns[0].values, (std::vector<double>{3, 3.5, 4, 5}));
  EXPECT_EQ(all.columns[1].presence, (std::vector<std::uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(all.columns[1].values, (std::vector<double>{30, 40}));
}

TEST(TickJoinTest, KeepsASeriesThatStandsTwiceInOneTable) {
  TickJoin join;
  for (int table = 0; table < 2; ++table) {
    ASSERT_TRUE(join.Add(Table({table}, {Column(1, {1}), Column(1, {2}), Column(1, {3})})).ok());
  }
  const TickTable all = join.Take();
  ASSERT_EQ(all.columns.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(all.columns[i].values, (std::vector<double>{i + 1.0, i + 1.0}));
    EXPECT_TRUE(all.columns[i].presence.empty());
  }
}

TEST(TickJoinTest, RefusesVectorsThatDoNotFit) {
  TickTable few_batches = Table({1, 2}, {});
  few_batches.batches.pop_back();
  for (const TickTable& table :
       {few_batches, Table({1, 2}, {Column(1, {1})}), Table({1, 2}, {Column(1, {1, 2}, {0, 1})}),
        Table({1, 2}, {Column(1, {1}, {1})})}) {
    TickJoin join;
    EXPECT_EQ(join.Add(table).code(), absl::StatusCode::kInternal);
  }
}

}  // namespace
}  // namespace stepwell
