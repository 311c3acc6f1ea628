#include "server/query_range.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

using Presence = std::vector<std::uint8_t>;

TEST(QueryRangeTest, TicksWithoutASampleDoNotCount) {
  struct Row {
    const char* name;
    std::vector<Presence> columns;  // empty presence = all
    std::optional<std::pair<std::int64_t, std::int64_t>> times;
  };
  const Row rows[] = {
      {"all", {{}}, {{10, 40}}},
      {"no columns", {}, std::nullopt},
      {"none of a column", {{0, 0, 0, 0}}, std::nullopt},
      {"the first and the last are empty", {{0, 1, 1, 0}}, {{10, 30}}},
      {"one column fills another's holes", {{0, 0, 1, 0}, {1, 0, 0, 0}}, {{20, 30}}},
      {"a full one beside a sparse one", {{0, 1, 0, 0}, {}}, {{10, 40}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TickTable table;
    table.times_us = {20, 10, 30, 40};  // in the order in which they came
    for (const Presence& presence : row.columns) {
      table.columns.push_back({.series_no = SeriesNo{1}, .values = {}, .presence = presence});
    }
    const std::optional<SampleTimes> times = SampleTimesOf(table);
    ASSERT_EQ(times.has_value(), row.times.has_value());
    if (!times) continue;
    EXPECT_EQ(times->first_us, row.times->first);
    EXPECT_EQ(times->last_us, row.times->second);
  }
}

TEST(QueryRangeTest, DaysThatOnlyRollupsTellOfAreInTheSpan) {
  const auto line = [](std::int64_t first_us, std::int64_t samples, std::int64_t rollup_bytes) {
    UsageRecord record;
    record.metric_group = "gpu";
    record.first_time_us = first_us;
    record.last_time_us = first_us + 9;
    record.sample_count = samples;
    record.rollup_byte_count = rollup_bytes;
    return record;
  };
  const TimeBounds span =
      SpanOf({line(10, 0, 0), line(100, 0, 7), line(200, 5, 7)}, {}, {"gpu"}, {1});
  EXPECT_EQ(span.start_us, 100) << "where nothing is left is nothing to show";
  EXPECT_EQ(span.end_us, 210);
}

// One machine whose clock stands at 1970 has its samples in heads, too.
TEST(QueryRangeTest, WhatHeadsHaveOfOtherSeriesIsNotInTheSpan) {
  auto chunk = std::make_shared<HeadChunk>();
  chunk->tables.resize(2);
  chunk->tables[0].times_us = {5, 10};
  chunk->tables[0].columns = {{.series_no = SeriesNo{1}, .values = {1, 1}, .presence = {}}};
  chunk->tables[1].times_us = {700, 600, 800};
  chunk->tables[1].columns = {{.series_no = SeriesNo{1}, .values = {1, 1, 1}, .presence = {}},
                              {.series_no = SeriesNo{2}, .values = {1, 1}, .presence = {1, 1, 0}}};
  const TimeBounds span = SpanOf({}, {chunk}, {"gpu"}, {2});
  EXPECT_EQ(span.start_us, 600);
  EXPECT_EQ(span.end_us, 701);
  EXPECT_EQ(SpanOf({}, {chunk}, {"gpu"}, {1, 2}).start_us, 5);
}

}  // namespace
}  // namespace stepwell
