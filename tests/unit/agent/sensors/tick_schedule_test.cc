#include "client/agent/sensors/tick_schedule.h"

#include <gtest/gtest.h>

namespace stepwell::agent {
namespace {

absl::Duration Ms(int ms) { return absl::Milliseconds(ms); }

TEST(TickScheduleTest, FirstAtOnceRatesAfter100MsThenOnAGrid) {
  TickSchedule schedule(Ms(1000), Ms(5000));
  EXPECT_EQ(schedule.due(), Ms(5000));
  EXPECT_EQ(schedule.Take(Ms(5003)), 0u);
  EXPECT_EQ(schedule.due(), Ms(5100));
  EXPECT_EQ(schedule.Take(Ms(5108)), 0u);
  EXPECT_EQ(schedule.due(), Ms(6000));
  EXPECT_EQ(schedule.Take(Ms(6000)), 0u);
  EXPECT_EQ(schedule.due(), Ms(7000));
}

TEST(TickScheduleTest, TheGridIsThatOfAllAndLeavesHalfAnIntervalAtLeast) {
  const struct {
    const char* name;
    int interval_ms;
    int begun_ms;
    int lead_ms;
    int second_ms;
    int third_ms;
    int fourth_ms;
  } rows[] = {
      {"on the grid", 1000, 5000, 0, 5100, 6000, 7000},
      {"far from it", 1000, 5300, 0, 5400, 6000, 7000},
      {"half an interval", 1000, 5400, 0, 5500, 6000, 7000},
      {"too near", 1000, 5401, 0, 5501, 7000, 8000},
      {"it leads", 1000, 5200, 100, 5300, 5900, 6900},
      {"it leads and is too near", 1000, 5301, 100, 5401, 6900, 7900},
      {"as often as visits", 100, 5033, 100, 5133, 5200, 5300},
      {"10 ms", 10, 5003, 0, 5013, 5020, 5030},
      {"a minute: a second between is enough", 60000, 5000, 0, 5100, 60000, 120000},
      {"a minute, too near", 60000, 59000, 0, 59100, 120000, 180000},
  };
  for (const auto& row : rows) {
    TickSchedule schedule(Ms(row.interval_ms), Ms(row.begun_ms), Ms(row.lead_ms));
    for (const int due_ms : {row.begun_ms, row.second_ms, row.third_ms, row.fourth_ms}) {
      EXPECT_EQ(schedule.due(), Ms(due_ms)) << row.name;
      EXPECT_EQ(schedule.Take(Ms(due_ms)), 0u) << row.name;
    }
  }
}

// The second is not on the grid: where it is late, the next must not follow at once.
TEST(TickScheduleTest, ALateSecondTickKeepsItsDistance) {
  const struct {
    int taken_ms;
    std::uint64_t missed;
    int due_ms;
  } rows[] = {{5500, 0, 6000}, {5501, 0, 7000}, {6450, 0, 7000}, {6500, 1, 7000}, {6501, 1, 8000}};
  for (const auto& row : rows) {
    TickSchedule schedule(Ms(1000), Ms(5400));
    schedule.Take(Ms(5400));
    EXPECT_EQ(schedule.Take(Ms(row.taken_ms)), row.missed) << row.taken_ms;
    EXPECT_EQ(schedule.due(), Ms(row.due_ms)) << row.taken_ms;
  }
}

TEST(TickScheduleTest, AShortIntervalDoesNotWaitForIt) {
  TickSchedule schedule(Ms(10), Ms(0));
  schedule.Take(Ms(0));
  EXPECT_EQ(schedule.due(), Ms(10));
}

TEST(TickScheduleTest, WhatWasSleptThroughIsCountedAndNotMadeUp) {
  TickSchedule schedule(Ms(1000), Ms(0));
  schedule.Take(Ms(0));
  schedule.Take(Ms(100));
  // Due at 1000; stopped until 5500: 2000, 3000, 4000 and 5000 would have come.
  EXPECT_EQ(schedule.Take(Ms(5500)), 4u);
  EXPECT_EQ(schedule.due(), Ms(6000));
}

TEST(TickScheduleTest, AnotherIntervalBeginsAtOnceAndTheSameGoesOn) {
  TickSchedule schedule(Ms(1000), Ms(0));
  schedule.Take(Ms(0));
  schedule.Take(Ms(100));
  schedule.SetInterval(Ms(1000), Ms(300));
  EXPECT_EQ(schedule.due(), Ms(1000));
  schedule.SetInterval(Ms(50), Ms(300));
  EXPECT_EQ(schedule.due(), Ms(300));
  schedule.Take(Ms(301));
  EXPECT_EQ(schedule.due(), Ms(350));
}

TEST(TickScheduleTest, AfterAPauseItBeginsAsAtTheStart) {
  TickSchedule schedule(Ms(1000), Ms(0));
  schedule.Take(Ms(0));
  schedule.Take(Ms(100));
  schedule.Restart(Ms(60000));
  EXPECT_EQ(schedule.Take(Ms(60001)), 0u);
  EXPECT_EQ(schedule.due(), Ms(60100));
}

}  // namespace
}  // namespace stepwell::agent
