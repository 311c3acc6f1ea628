// Of the clocks of a merge: those that drift, and those that were set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/trace/merge_plan.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 20'000 * 86'400 * kSecond;

MergeInput Input(const char* label, std::int32_t rank, const char* machine, Interval window) {
  MergeInput input;
  input.label = label;
  input.machine = machine;
  input.origin.rank = rank;
  input.origin.first_time_ns = window.begin;
  input.origin.window = window;
  return input;
}

// An hour over which a clock loses 40 us a second: 144 ms at its end. Its exchanges tell it, and it is taken out.
TEST(MergeDrift, ADriftThatExchangesShowIsTakenOut) {
  constexpr std::int64_t kHour = 3600 * kSecond;
  std::vector<MergeInput> inputs = {Input("0", 0, "a", {kNow, kNow + kHour}),
                                    Input("1", 1, "b", {kNow, kNow + kHour})};
  for (std::int64_t at = 0; at <= kHour; at += 10 * kSecond) {
    inputs[0].origin.master_clock.Take({kNow + at, 0, 1000}, "t");
    inputs[1].origin.master_clock.Take({kNow + at, 5000 + at / 25'000, 1000}, "t");
  }
  const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlacedInput& placed = plan->inputs[1];
  EXPECT_NEAR(placed.drift, 40e-6, 1e-7);
  EXPECT_NEAR(static_cast<double>(placed.shift_ns), 5000, 1000);
  for (std::int64_t at = 0; at <= kHour; at += kHour / 7) {
    const auto found = PlaceTime(placed, kNow + at);
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(static_cast<double>(*found - kNow), static_cast<double>(at + 5000 + at / 25'000),
                static_cast<double>(*placed.error_ns));
  }
  // What clocks may drift between two exchanges, and how far off these are; 72 ms without.
  EXPECT_LE(*placed.error_ns, 1'100'000);
  ASSERT_EQ(plan->notes.size(), 1u);
  EXPECT_THAT(plan->notes[0], HasSubstr("1: its machine's clock loses 40 us a second"));
  EXPECT_EQ(plan->inputs[0].drift, 0);
  // Files that begin together lie as they are.
  const auto by_start = PlanMerge(inputs, MergeAlignment::kStart);
  ASSERT_TRUE(by_start.ok()) << by_start.status();
  EXPECT_EQ(by_start->inputs[1].drift, 0);
  EXPECT_THAT(by_start->notes, IsEmpty());
  std::swap(inputs[0], inputs[1]);
  EXPECT_EQ(PlanMerge(inputs, MergeAlignment::kStart)->inputs[0].drift, 0);
}

// By 5 s, while rank 0 was recorded: what was begun afterwards on that machine lies along another line.
TEST(MergeDrift, AClockThatWasSetIsNoReasonToSayNothing) {
  std::vector<MergeInput> inputs = {Input("rank 0", 0, "a", {kNow, kNow + 10}),
                                    Input("rank 1", 1, "a", {kNow + 70, kNow + 80}),
                                    Input("elsewhere", 2, "a", {kNow, kNow + 10})};
  inputs[0].origin.wall_ahead = {0, 5'000'000'000};
  for (const bool is_one : {true, false}) {
    if (is_one) inputs[2].machine = "a";
    if (!is_one) inputs[2].machine = "b";
    for (MergeInput& input : inputs) {
      input.origin.master_clock = {};
      if (!is_one) input.origin.master_clock.Take({kNow, 0, 10}, "t");
    }
    const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->inputs[0].error_ns, 5'000'000'000);
    EXPECT_EQ(plan->inputs[1].error_ns, 5'000'000'000);
    EXPECT_EQ(plan->inputs[2].error_ns.value_or(-1) < 5'000'000'000, !is_one);
    ASSERT_EQ(plan->notes.size(), 1u);
    EXPECT_THAT(plan->notes[0], HasSubstr("rank 0: its machine's clock was set by 5.000 s"));
  }
  // Nothing else is of that clock.
  inputs[1].machine = "c";
  const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->notes, IsEmpty());
}

}  // namespace
}  // namespace stepwell
