#include "server/machine_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kSecond = 1'000'000'000;

PlacedInput Placed(const char* machine, Interval seconds, std::int64_t shift_ns) {
  PlacedInput input;
  input.machine = machine;
  input.window = {seconds.begin * kSecond, seconds.end * kSecond};
  input.shift_ns = shift_ns;
  return input;
}

TEST(MachineClocksTest, WhatAMachineMeasuredGoesWhereItsTracesWent) {
  MergePlan plan;
  plan.inputs = {Placed("b", {200, 210}, -7), Placed("a", {100, 110}, 0),
                 Placed("b", {100, 110}, -5), Placed("b", {105, 112}, -5),
                 Placed("", {100, 110}, 99)};
  const MachineClocks clocks(plan);
  const auto at = [&](const char* machine, std::int64_t second) {
    return clocks.PlaceOf(machine, second * kSecond) - second * kSecond;
  };
  EXPECT_EQ(at("a", 105), 0);
  EXPECT_EQ(at("b", 50), -5);
  EXPECT_EQ(at("b", 111), -5);
  EXPECT_EQ(at("b", 150), -5) << "the nearer one";
  EXPECT_EQ(at("b", 170), -7);
  EXPECT_EQ(at("b", 205), -7);
  EXPECT_EQ(at("b", 900), -7);
  EXPECT_EQ(at("none", 105), 0);
  EXPECT_EQ(at("", 105), 0);
}

// Two files of one recording, along one line; beyond it a clock is not thought to drift on.
TEST(MachineClocksTest, WhatWasMeasuredDriftsWithItsTraces) {
  MergePlan plan;
  plan.inputs = {Placed("a", {100, 200}, 5000), Placed("a", {200, 300}, 5000 + 4'000'000)};
  for (PlacedInput& input : plan.inputs) input.drift = 40e-6;
  const MachineClocks clocks(plan);
  for (const auto& [second, shift_us] : {std::pair(50, 5),
                                         {100, 5},
                                         {150, 2005},
                                         {200, 4005},
                                         {250, 6005},
                                         {300, 8005},
                                         {400, 8005}}) {
    EXPECT_EQ(clocks.PlaceOf("a", second * kSecond) - second * kSecond, shift_us * 1000) << second;
  }
  // What lies at a time of the common clock was measured so much earlier at most.
  EXPECT_THAT(clocks.OwnTimes({{300 * kSecond, 301 * kSecond}}),
              ElementsAre(Interval{300 * kSecond - 8'005'000, 301 * kSecond}));
}

// Two recordings whose clock had stepped in between, and drifts as much as ever.
TEST(MachineClocksTest, LinesOfOneDriftAreNotOneLine) {
  MergePlan plan;
  plan.inputs = {Placed("a", {100, 200}, 0), Placed("a", {200, 300}, kSecond)};
  for (PlacedInput& input : plan.inputs) input.drift = 100e-6;
  const MachineClocks clocks(plan);
  EXPECT_EQ(clocks.PlaceOf("a", 150 * kSecond) - 150 * kSecond, 5'000'000);
  EXPECT_EQ(clocks.PlaceOf("a", 250 * kSecond) - 250 * kSecond, kSecond + 5'000'000);
}

TEST(MachineClocksTest, OfTracesOfOneTimeTheFirstHasIt) {
  MergePlan plan;
  plan.inputs = {Placed("a", {100, 1000}, -5), Placed("a", {200, 210}, -7),
                 Placed("a", {900, 1100}, -9)};
  const MachineClocks clocks(plan);
  for (const auto& [second, shift] : {std::pair(500, -5), {205, -5}, {950, -5}, {1050, -9}}) {
    EXPECT_EQ(clocks.PlaceOf("a", second * kSecond) - second * kSecond, shift) << second;
  }
}

TEST(MachineClocksTest, AbsurdShiftsOverflowNothing) {
  MergePlan plan;
  for (const std::int64_t shift : {INT64_MIN, INT64_MIN + 1, std::int64_t{0}, INT64_MAX}) {
    PlacedInput input = Placed("a", {0, 0}, shift);
    input.window = {shift, INT64_MAX};
    plan.inputs.push_back(input);
    plan.inputs.push_back(Placed(std::to_string(shift).c_str(), {100, 110}, shift));
  }
  const MachineClocks clocks(plan);
  EXPECT_THAT(clocks.OwnTimes({{INT64_MIN, INT64_MAX}}), ::testing::Not(::testing::IsEmpty()));
  for (const std::int64_t time : {INT64_MIN, std::int64_t{0}, INT64_MAX}) {
    for (const PlacedInput& input : plan.inputs) clocks.PlaceOf(input.machine, time);
  }
}

TEST(MachineClocksTest, AsMuchIsReadAsTheClocksAreApart) {
  MergePlan plan;
  plan.inputs = {Placed("a", {100, 110}, 0), Placed("b", {105, 115}, -5 * kSecond),
                 Placed("c", {98, 108}, 2 * kSecond)};
  const auto seconds = [](const std::vector<Interval>& times) {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (const Interval& each : times) found.emplace_back(each.begin / kSecond, each.end / kSecond);
    return found;
  };
  EXPECT_THAT(seconds(MachineClocks(plan).OwnTimes({{100 * kSecond, 110 * kSecond}})),
              ElementsAre(std::pair(98, 115)));
  // An hour off: what lies in between is not read.
  plan.inputs[1].shift_ns = -3600 * kSecond;
  EXPECT_THAT(seconds(MachineClocks(plan).OwnTimes({{100 * kSecond, 110 * kSecond}})),
              ElementsAre(std::pair(98, 110), std::pair(3700, 3710)));
  EXPECT_THAT(seconds(MachineClocks(MergePlan()).OwnTimes({{100 * kSecond, 110 * kSecond}})),
              ElementsAre(std::pair(100, 110)));
}

TEST(MachineClocksTest, ClocksWithoutNumberAreReadUpToABound) {
  MergePlan plan;
  for (int i = 0; i < 1000; ++i) {
    plan.inputs.push_back(Placed(std::to_string(i).c_str(), {100, 110}, i * 3600 * kSecond));
  }
  EXPECT_EQ(MachineClocks(plan).OwnTimes({{0, 1}}).size(), MachineClocks::kApartMax);
  EXPECT_FALSE(MachineClocks(plan).has_all());
  EXPECT_EQ(MachineClocks(plan).OwnTimes({{0, 1}})[0], (Interval{0, 1})) << "the common clock's";
  plan.inputs.resize(MachineClocks::kApartMax);
  EXPECT_TRUE(MachineClocks(plan).has_all());
}

}  // namespace
}  // namespace stepwell
