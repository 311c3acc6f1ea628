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
  EXPECT_EQ(schedule.due(), Ms(6100));
  EXPECT_EQ(schedule.Take(Ms(6100)), 0u);
  EXPECT_EQ(schedule.due(), Ms(7100));
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
  // Due at 1100; stopped until 5500: 2100, 3100, 4100 and 5100 would have come.
  EXPECT_EQ(schedule.Take(Ms(5500)), 4u);
  EXPECT_EQ(schedule.due(), Ms(6100));
}

TEST(TickScheduleTest, AnotherIntervalBeginsAtOnceAndTheSameGoesOn) {
  TickSchedule schedule(Ms(1000), Ms(0));
  schedule.Take(Ms(0));
  schedule.Take(Ms(100));
  schedule.SetInterval(Ms(1000), Ms(300));
  EXPECT_EQ(schedule.due(), Ms(1100));
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
