#include "server/time_spread.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/limits.h"
#include "tests/unit/server/chunk_maker.h"

namespace stepwell {
namespace {

constexpr std::int64_t kHourUs = 3'600'000'000;
constexpr std::int64_t kMinuteUs = 60'000'000;

TickTable Ticks(std::uint32_t tick_group, int count, std::int64_t step_us,
                std::int64_t start_us = kSealedTimeUs) {
  TickTable table;
  table.tick_group = tick_group;
  for (int i = 0; i < count; ++i) table.times_us.push_back(start_us + i * step_us);
  return table;
}

// One table for each of so many groups.
std::vector<TickTable> Groups(int count, const TickTable& table) {
  std::vector<TickTable> tables(static_cast<std::size_t>(count), table);
  for (int i = 0; i < count; ++i) {
    tables[static_cast<std::size_t>(i)].tick_group = static_cast<std::uint32_t>(i + 1);
  }
  return tables;
}

// `ticks` days of one group, dealt to so many tables in turn.
std::vector<TickTable> Dealt(int table_count, int ticks) {
  std::vector<TickTable> tables;
  for (int i = 0; i < table_count; ++i) {
    tables.push_back(Ticks(1, ticks / table_count, table_count * 25 * kHourUs, i * 25 * kHourUs));
  }
  return tables;
}

TEST(TimeSpreadTest, WhatNobodysChunkIsIsRefused) {
  TickTable clock_set_twice = Ticks(1, 3, kMinuteUs);
  clock_set_twice.times_us.push_back(0);
  clock_set_twice.times_us.push_back(9'223'372'036'854'775);
  TickTable backwards = Ticks(1, 5000, -25 * kHourUs);
  struct Row {
    const char* name;
    std::vector<TickTable> tables;
    int stretches;  // 0 = it is taken
  };
  for (const Row& row : std::vector<Row>{
           {"nothing", {}, 0},
           {"a second each", {Ticks(1, kChunkSamplesMax, 1'000'000)}, 0},
           {"a minute each for 45 days", {Ticks(1, kChunkSamplesMax, kMinuteUs)}, 0},
           {"an hour each for seven years", {Ticks(1, kChunkSamplesMax, kHourUs)}, 0},
           {"4096 days", {Ticks(1, 4096, 25 * kHourUs)}, 0},
           {"4097 days", {Ticks(1, 4097, 25 * kHourUs)}, 4097},
           {"5000 days, the last first", {backwards}, 5000},
           {"4097 days, in many tables", Dealt(1500, 4097), 0},
           {"a machine's clock, set twice", Groups(1000, clock_set_twice), 0},
           {"one tick of each group", Groups(kChunkTablesMax, Ticks(1, 1, 0)), 0},
           {"four days of each group", Groups(2000, Ticks(1, 4, 25 * kHourUs)), 8000},
           {"as many days as ticks", {Ticks(1, kChunkSamplesMax, 25 * kHourUs)}, 65536},
           {"in many tables", Dealt(kChunkTablesMax, kChunkSamplesMax), 65536},
       }) {
    SCOPED_TRACE(row.name);
    const MaybeComplaint complaint = CheckTimeSpread(row.tables);
    ASSERT_EQ(complaint.has_value(), row.stretches > 0)
        << (complaint ? complaint->message : std::string());
    if (!complaint) continue;
    EXPECT_EQ(complaint->code, absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(complaint->reason, "TIME_SPREAD");
    EXPECT_NE(complaint->message.find(absl::StrCat("over ", row.stretches, " stretches")),
              std::string::npos)
        << complaint->message;
  }
}

}  // namespace
}  // namespace stepwell
