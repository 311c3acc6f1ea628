#include "client/agent/sensors/amd_throttle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Reasons = std::map<std::string, bool>;

Reasons NextOf(AmdThrottle& throttle, const AmdTable& table) {
  Reasons active;
  const auto reasons = throttle.Next(table);
  for (const AmdThrottle::Reason& reason : *reasons) {
    if (reason.active) active[reason.label] = true;
  }
  return active;
}

AmdTable TableOf(AmdTable::Cycles cycles) {
  AmdTable table;
  table.revision = 6;
  table.cycles = cycles;
  return table;
}

TEST(AmdThrottleTest, EachBitHasItsReason) {
  const std::pair<int, const char*> rows[] = {
      {0, "power_cap"},   {7, "power_cap"},   {8, "other"},       {16, "current"},
      {23, "current"},    {24, "other"},      {32, "sw_thermal"}, {43, "sw_thermal"},
      {44, "hw_thermal"}, {47, "hw_thermal"}, {48, "other"},      {57, "other"}};
  AmdThrottle throttle;
  AmdTable table;
  table.throttlers = 0;
  EXPECT_THAT(NextOf(throttle, table), IsEmpty());
  EXPECT_EQ(throttle.Next(table)->size(), 5u);
  for (const auto& [bit, reason] : rows) {
    table.throttlers = std::uint64_t{1} << bit;
    EXPECT_THAT(NextOf(throttle, table), ElementsAre(Pair(reason, true))) << bit;
  }
}

TEST(AmdThrottleTest, EachCountHasItsReason) {
  const std::pair<AmdTable::Cycles, const char*> rows[] = {{{200, 1, 0, 0, 0, 0}, "hw_thermal"},
                                                           {{200, 0, 1, 0, 0, 0}, "power_cap"},
                                                           {{200, 0, 0, 1, 0, 0}, "sw_thermal"},
                                                           {{200, 0, 0, 0, 1, 0}, "sw_thermal"},
                                                           {{200, 0, 0, 0, 0, 1}, "sw_thermal"}};
  for (const auto& [cycles, reason] : rows) {
    AmdThrottle throttle;
    EXPECT_THAT(*throttle.Next(TableOf({100, 0, 0, 0, 0, 0})), IsEmpty());
    EXPECT_THAT(NextOf(throttle, TableOf(cycles)), ElementsAre(Pair(reason, true)));
  }
}

TEST(AmdThrottleTest, CountsThatStandStillOrBeginAnewSayNothing) {
  AmdThrottle throttle;
  const AmdTable table = TableOf({100, 0, 50, 0, 0, 0});
  EXPECT_THAT(*throttle.Next(table), IsEmpty());
  EXPECT_THAT(*throttle.Next(table), IsEmpty());
  EXPECT_THAT(*throttle.Next(TableOf({10, 0, 5, 0, 0, 0})), IsEmpty());
  EXPECT_THAT(*throttle.Next(TableOf({20, 0, 1, 0, 0, 0})), IsEmpty());
  EXPECT_EQ(throttle.Next(TableOf({30, 0, 1, 0, 0, 0}))->size(), 3u);
  throttle.Forget();
  EXPECT_THAT(*throttle.Next(TableOf({40, 0, 1, 0, 0, 0})), IsEmpty());
}

TEST(AmdThrottleTest, WhatCannotBeACountIsNotBelieved) {
  AmdThrottle throttle;
  throttle.Next(TableOf({100, 0, 0, 0, 0, 0})).IgnoreError();
  EXPECT_TRUE(absl::IsUnimplemented(throttle.Next(TableOf({110, 0, 0, 0, 4000, 0})).status()));
  EXPECT_TRUE(absl::IsUnimplemented(throttle.Next(AmdTable{}).status()));
}

}  // namespace
}  // namespace stepwell::agent
