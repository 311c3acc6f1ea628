#include "base/trace/merge_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kDayNs = std::int64_t{86'400} * 1'000'000'000;
constexpr std::int64_t kNow = 20'000 * kDayNs;

MergeInput Input(const char* label, std::int32_t rank, std::int64_t first_ns,
                 std::optional<std::int64_t> sync_ns = std::nullopt) {
  MergeInput input;
  input.label = label;
  input.origin.rank = rank;
  input.origin.first_time_ns = first_ns;
  input.origin.sync_time_ns = sync_ns;
  input.origin.sync_error_ns = sync_ns.has_value() ? 3 * kUs : 0;
  return input;
}

TEST(MergePlan, EachCycleIsShiftedByItsOwnBarrier) {
  // Rank 1's clock is 4000 us ahead in the first cycle and 4500 in the second.
  const auto plan = PlanMerge(
      {Input("r0c0", 0, 1100 * kUs, 1000 * kUs), Input("r1c0", 1, 5100 * kUs, 5000 * kUs),
       Input("r0c1", 0, 2100 * kUs, 2000 * kUs), Input("r1c1", 1, 6600 * kUs, 6500 * kUs)},
      MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].shift_ns, 0);
  EXPECT_EQ(plan->inputs[1].shift_ns, -4000 * kUs);
  EXPECT_EQ(plan->inputs[2].shift_ns, 0);
  EXPECT_EQ(plan->inputs[3].shift_ns, -4500 * kUs);
  EXPECT_EQ(plan->inputs[0].error_ns, 0);
  EXPECT_EQ(plan->inputs[1].error_ns, 6 * kUs);
  EXPECT_EQ(plan->inputs[0].lane, plan->inputs[2].lane);
  EXPECT_EQ(plan->inputs[1].lane, plan->inputs[3].lane);
  EXPECT_NE(plan->inputs[0].lane, plan->inputs[1].lane);
  EXPECT_THAT(plan->notes, IsEmpty());
}

TEST(MergePlan, NamesOfCyclesTellWhichBarriersBelongTogether) {
  std::vector<MergeInput> inputs = {Input("r0c0", 0, 1100, 1000), Input("r0c1", 0, 2100, 2000),
                                    Input("r1c1", 1, 6600, 6500)};
  inputs[0].cycle = "ep0-ba4";
  inputs[1].cycle = inputs[2].cycle = "ep0-ba8";
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->inputs[2].shift_ns, -4500);
  ASSERT_EQ(plan->notes.size(), 1u);
  EXPECT_THAT(plan->notes[0], HasSubstr("rank 1 has 1 cycles, rank 0 has 2"));
}

TEST(MergePlan, ANativeTraceGoesByTheLastBarrierOfItsRank) {
  std::vector<MergeInput> inputs = {Input("r0c0", 0, 1100, 1000), Input("r1c0", 1, 5100, 5000),
                                    Input("r0c1", 0, 2100, 2000), Input("r1c1", 1, 6600, 6500),
                                    Input("torch", 1, 6400)};
  inputs[4].origin.is_native = true;
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->inputs[4].shift_ns, -4000);
  EXPECT_NE(plan->inputs[4].lane, plan->inputs[1].lane);
  inputs[4].origin.first_time_ns = 6700;
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  EXPECT_EQ(plan->inputs[4].shift_ns, -4500);
}

TEST(MergePlan, RanksOfOneMachineAreNotShiftedAgainstEachOther) {
  // Their barriers differ by how late each one woke.
  std::vector<MergeInput> inputs = {
      Input("0", 0, kNow + 10, kNow), Input("1", 1, kNow + 10, kNow + 700),
      Input("2", 2, kNow + 9000, kNow + 8000), Input("3", 3, kNow + 9000, kNow + 8800)};
  for (std::size_t i = 0; i < 2; ++i) inputs[i].machine = "node-a";
  for (std::size_t i = 2; i < 4; ++i) inputs[i].machine = "node-b";
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->inputs[0].shift_ns, 0);
  EXPECT_EQ(plan->inputs[1].shift_ns, 0);
  EXPECT_EQ(plan->inputs[1].error_ns, 0);
  EXPECT_EQ(plan->inputs[2].shift_ns, -8000);
  EXPECT_EQ(plan->inputs[3].shift_ns, -8000);
  for (MergeInput& input : inputs) input.machine = "node-a";
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  for (const PlacedInput& placed : plan->inputs) {
    EXPECT_EQ(placed.shift_ns, 0);
    EXPECT_EQ(placed.error_ns, 0);
  }
}

TEST(MergePlan, WithoutBarriersExchangesWithTheMasterPlaceWhatIsOnSeveralMachines) {
  std::vector<MergeInput> inputs = {Input("r1", 1, kNow + 300), Input("r0", 0, kNow),
                                    Input("r2", 2, kNow + 50), Input("r3", 3, kNow + 60),
                                    Input("r1 native", 1, kNow + 310)};
  inputs[0].machine = inputs[4].machine = "a";
  inputs[1].machine = "b";
  inputs[2].machine = "b";
  inputs[3].machine = "c";
  inputs[0].origin.master_clock.Take({kNow + 300, -200, 30}, "t");
  inputs[1].origin.master_clock.Take({kNow, 100, 4}, "t");
  // Of rank 0's machine, whose clock it shares whatever was measured.
  inputs[2].origin.master_clock.Take({kNow + 50, 700, 5000}, "t");
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].shift_ns, -300);
  EXPECT_EQ(plan->inputs[0].error_ns, 34);
  EXPECT_EQ(plan->inputs[4].shift_ns, -300);
  EXPECT_EQ(plan->inputs[4].error_ns, 34);
  for (const int of_base : {1, 2}) {
    EXPECT_EQ(plan->inputs[of_base].shift_ns, 0);
    EXPECT_EQ(plan->inputs[of_base].error_ns, 0);
  }
  EXPECT_EQ(plan->inputs[3].shift_ns, 0);
  EXPECT_FALSE(plan->inputs[3].error_ns.has_value()) << "nothing tells";

  // Of another trial, whose master may be another.
  inputs[0].origin.master_clock = {};
  inputs[0].origin.master_clock.Take({kNow + 300, -200, 30}, "other");
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].shift_ns, 0);
  EXPECT_FALSE(plan->inputs[0].error_ns.has_value());

  // On one machine nothing is shifted.
  for (MergeInput& input : inputs) input.machine = "a";
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlacedInput& placed : plan->inputs) {
    EXPECT_EQ(placed.shift_ns, 0);
    EXPECT_EQ(placed.error_ns, 0);
  }
}

TEST(MergePlan, WithoutBarriersTheErrorIsUnknownAndAPersonsShiftIsTaken) {
  std::vector<MergeInput> inputs = {Input("a", 0, kNow), Input("b", 1, kNow + kUs)};
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->inputs[1].shift_ns, 0);
  EXPECT_EQ(plan->inputs[1].error_ns, std::nullopt);
  inputs[1].shift_ns = -5 * kUs;
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  EXPECT_EQ(plan->inputs[1].shift_ns, -5 * kUs);
  // Times of the merged trace are some hours at most: a double holds them.
  EXPECT_LE(plan->base_time_ns, kNow - kUs);
  EXPECT_GT(plan->base_time_ns, kNow - kDayNs);
}

TEST(MergePlan, FilesOfOneRankShareItsClockUnlessTheirMachinesDiffer) {
  std::vector<MergeInput> inputs = {Input("a", 3, kNow), Input("b", 3, kNow + kUs)};
  for (const bool is_told : {false, true}) {
    const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
    ASSERT_TRUE(plan.ok());
    for (const PlacedInput& placed : plan->inputs) {
      EXPECT_EQ(placed.shift_ns, 0);
      EXPECT_EQ(placed.error_ns, is_told ? std::nullopt : std::optional<std::int64_t>(0));
    }
    inputs[0].machine = "one";
    inputs[1].machine = "other";
  }
}

TEST(MergePlan, ClocksWithNothingInCommonAreRefusedUnlessStartsAreAligned) {
  const std::vector<MergeInput> inputs = {Input("trainer.json", 0, kNow),
                                          Input("torch.json", 0, 7 * kUs)};
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status()));
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("torch.json begins 54.8 years before trainer.json"));
  plan = PlanMerge(inputs, MergeAlignment::kStart);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[1].shift_ns, kNow - 7 * kUs);
  EXPECT_EQ(plan->inputs[1].error_ns, std::nullopt);
}

TEST(MergePlan, OneRankTwiceFromOneTimeOnHasRowsOfItsOwn) {
  const auto plan =
      PlanMerge({Input("a", 3, kNow), Input("copy", 3, kNow), Input("later", 3, kNow + kUs)},
                MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  EXPECT_NE(plan->inputs[0].lane, plan->inputs[1].lane);
  EXPECT_EQ(plan->inputs[0].lane, plan->inputs[2].lane);
  ASSERT_EQ(plan->notes.size(), 1u);
  EXPECT_THAT(plan->notes[0], HasSubstr("copy: rank 3 is there twice"));
}

TEST(MergePlan, BadInputsAreNamed) {
  MergeInput no_rank = Input("x.json", 0, kNow);
  no_rank.origin.rank.reset();
  MergeInput no_time = Input("y.json", 0, kNow);
  no_time.origin.first_time_ns.reset();
  const struct {
    std::vector<MergeInput> inputs;
    const char* says;
  } rows[] = {
      {{}, "no trace"},
      {{no_rank}, "x.json: nothing tells its rank"},
      {{Input("a", 0, kNow), no_time}, "y.json: it has no event with a time"},
      {{Input("z.json", 0, INT64_MAX)}, "z.json: its times are absurd"},
      {{Input("z.json", 0, INT64_MIN)}, "z.json: its times are absurd"},
  };
  for (const auto& row : rows) {
    for (const MergeAlignment alignment : {MergeAlignment::kClock, MergeAlignment::kStart}) {
      const auto plan = PlanMerge(row.inputs, alignment);
      EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << row.says;
      EXPECT_THAT(std::string(plan.status().message()), HasSubstr(row.says));
    }
  }
}

}  // namespace
}  // namespace stepwell
