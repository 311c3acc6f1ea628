// Whose clock a merge's inputs have, where kernels are told beside machines' names.
#include <gtest/gtest.h>

#include "base/trace/merge_plan.h"

namespace stepwell {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000'000'000;

MergeInput OfTime(const char* label, std::int32_t rank, Interval window) {
  MergeInput input;
  input.label = label;
  input.origin.rank = rank;
  input.origin.first_time_ns = window.begin;
  input.origin.window = window;
  return input;
}

MergeInput OfMachine(const char* label, std::int32_t rank, const char* machine, Interval window,
                     MasterClock::Reading reading) {
  MergeInput input = OfTime(label, rank, window);
  input.origin.machine = machine;
  input.origin.master_clock.Take(reading, "t");
  return input;
}

MergeInput OfKernel(MergeInput input, const char* boot_id) {
  input.origin.boot_id = boot_id;
  return input;
}

TEST(MergeKernels, TwoMachinesOfOneNameHaveTheirOwnClocks) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto recorded = [](int rank, std::int64_t ahead_ns) {
    return OfMachine("r", rank, "localhost", {kNow, kNow + kSecond}, {kNow, ahead_ns, 100});
  };
  std::vector<MergeInput> inputs = {
      OfKernel(recorded(0, 0), "boot-a"), OfKernel(recorded(1, -5 * kSecond), "boot-b"),
      // What a native profiler saw there, whose upload told the name alone.
      OfTime("native 1", 1, {kNow, kNow + kSecond}), OfTime("native 2", 2, {kNow, kNow + kSecond})};
  inputs[2].machine = inputs[3].machine = "localhost";
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].shift_ns, 0);
  EXPECT_NEAR(static_cast<double>(plan->inputs[1].shift_ns), -5e9, 2e6);
  EXPECT_GT(plan->inputs[1].error_ns, 0);
  EXPECT_EQ(plan->inputs[2].shift_ns, plan->inputs[1].shift_ns) << "its rank was there";
  EXPECT_EQ(plan->inputs[2].error_ns, plan->inputs[1].error_ns);
  EXPECT_FALSE(plan->inputs[3].error_ns.has_value()) << "it may be of either";
  // A person says it, by names.
  inputs[0].machine = "one";
  inputs[3].machine = "one";
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[3].error_ns, 0);
  // Of a version before nobody tells of kernels.
  for (MergeInput& input : inputs) input.origin.boot_id.clear();
  inputs[0].machine = inputs[3].machine = "localhost";
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlacedInput& placed : plan->inputs) EXPECT_EQ(placed.error_ns, 0);
}

TEST(MergeKernels, ContainersOfOneKernelHaveOneClockWhateverTheirNames) {
  const auto recorded = [](int rank, const char* pod, std::int64_t ahead_ns) {
    return OfMachine("r", rank, pod, {kNow, kNow + 1000}, {kNow, ahead_ns, 100});
  };
  auto plan = PlanMerge(
      {OfKernel(recorded(0, "pod-0", 0), "boot-a"), OfKernel(recorded(1, "pod-1", 70), "boot-a")},
      MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlacedInput& placed : plan->inputs) {
    EXPECT_EQ(placed.shift_ns, 0);
    EXPECT_EQ(placed.error_ns, 0);
  }
  // A machine that was started anew may have been set meanwhile.
  plan = PlanMerge(
      {OfKernel(recorded(0, "pod-0", 0), "boot-a"), OfKernel(recorded(0, "pod-0", 70), "boot-b")},
      MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[1].shift_ns, 70);
  EXPECT_GT(plan->inputs[1].error_ns, 0);
}

}  // namespace
}  // namespace stepwell
