#include "base/trace/merge_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "tests/unit/base/trace/test_seed.h"

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
  // Both barriers', and what clocks drift until the events.
  EXPECT_EQ(plan->inputs[1].error_ns, 6 * kUs + 10);
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

TEST(MergePlan, ALongCycleIsAsFarOffAsClocksDriftSinceItsBarrier) {
  constexpr std::int64_t kHour = std::int64_t{3'600'000'000} * kUs;
  std::vector<MergeInput> inputs = {Input("r0", 0, kNow + kUs, kNow),
                                    Input("r1", 1, kNow + kUs, kNow)};
  for (MergeInput& input : inputs) input.origin.window = {kNow, kNow + kHour};
  const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->inputs[0].error_ns, 0);
  EXPECT_EQ(plan->inputs[1].error_ns, 6 * kUs + kHour / 10'000);
}

TEST(MergePlan, ABaseThatWentToAnotherMachineLeavesItsBarriersBehind) {
  // Rank 0 ran on a and was resumed on b, rank 1 on c: what b's barrier says nobody can tell of a's clock.
  std::vector<MergeInput> inputs = {
      Input("0a", 0, kNow + 10, kNow), Input("1c", 1, kNow + 510, kNow + 500),
      Input("0b", 0, kNow + 10'010, kNow + 10'000),
      Input("1c later", 1, kNow + 10'510, kNow + 10'500), Input("native on b", 0, kNow + 10'020)};
  const char* machines[] = {"a", "c", "b", "c", "b"};
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].machine = machines[i];
  inputs[0].cycle = inputs[1].cycle = "ep0-ba4";
  inputs[2].cycle = inputs[3].cycle = "ep0-ba8";
  inputs[4].origin.is_native = true;
  const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].error_ns, 0);
  EXPECT_EQ(plan->inputs[1].shift_ns, -500);
  EXPECT_TRUE(plan->inputs[1].error_ns.has_value());
  for (const int later : {2, 3, 4}) EXPECT_FALSE(plan->inputs[later].error_ns.has_value()) << later;
  // They lie together all the same.
  EXPECT_EQ(plan->inputs[3].shift_ns, -500);
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
  // Each clock's own, and at most a nanosecond of drift on either side.
  EXPECT_NEAR(static_cast<double>(plan->inputs[0].error_ns.value_or(0)), 34, 4);
  EXPECT_EQ(plan->inputs[4].shift_ns, -300);
  EXPECT_EQ(plan->inputs[4].error_ns, plan->inputs[0].error_ns);
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

MergeInput Recorded(const char* label, std::int32_t rank, const char* machine, Interval window,
                    MasterClock::Reading reading) {
  MergeInput input = Input(label, rank, window.begin);
  input.origin.window = window;
  input.origin.machine = machine;
  input.origin.master_clock.Take(reading, "t");
  return input;
}

TEST(MergePlan, ALaterFileOfARankHasTheErrorOfItsOwnTime) {
  constexpr std::int64_t kMs = 1'000'000, kHour = std::int64_t{3'600'000} * kMs;
  // The only exchange was an hour before: what it said has drifted since.
  const auto early = [](const char* label, std::int32_t rank, const char* machine) {
    return Recorded(label, rank, machine, {kNow, kNow + 100 * kMs}, {kNow, 0, kMs / 10});
  };
  const auto late = [](const char* label, std::int32_t rank, const char* machine) {
    return Recorded(label, rank, machine, {kNow + kHour, kNow + kHour + 100 * kMs},
                    {kNow + kHour + 100 * kMs, 0, 360 * kMs});
  };
  const auto plan =
      PlanMerge({early("a0", 0, "a"), early("b0", 1, "b"), late("a1", 0, "a"), late("b1", 1, "b")},
                MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->inputs[1].error_ns, kMs);
  EXPECT_GE(plan->inputs[3].error_ns, 700 * kMs);
  for (const int of_base : {0, 2}) EXPECT_EQ(plan->inputs[of_base].error_ns, 0);
}

TEST(MergePlan, ARankThatWasResumedElsewhereHasTheClockOfThatMachine) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::vector<MergeInput> inputs = {
      Recorded("on a", 0, "a", {kNow, kNow + kSecond}, {kNow, 0, 100}),
      // Five seconds ahead.
      Recorded("on b", 0, "b", {kNow + 15 * kSecond, kNow + 16 * kSecond},
               {kNow + 15 * kSecond, -5 * kSecond, 100}),
      Input("native", 0, kNow + 15 * kSecond)};
  inputs[2].origin.is_native = true;
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].shift_ns, 0);
  EXPECT_NEAR(static_cast<double>(plan->inputs[1].shift_ns), -5e9, 2e6);
  EXPECT_GT(plan->inputs[1].error_ns, 0);
  EXPECT_FALSE(plan->inputs[2].error_ns.has_value()) << "it may be of either machine";
  inputs[2].machine = "b";
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[2].shift_ns, plan->inputs[1].shift_ns);
  EXPECT_EQ(plan->inputs[2].error_ns, plan->inputs[1].error_ns);
}

TEST(MergePlan, FilesOfOneMachineAtOneTimeAreShiftedAsOne) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto plan = PlanMerge(
      {Recorded("0", 0, "a", {kNow, kNow + kSecond}, {kNow, 0, 0}),
       Recorded("2", 2, "b", {kNow, kNow + kSecond}, {kNow, 1000, 600}),
       Recorded("3", 3, "b", {kNow + kSecond / 2, kNow + 2 * kSecond}, {kNow, 1500, 600})},
      MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[1].shift_ns, plan->inputs[2].shift_ns);
}

TEST(MergePlan, WhatNoExchangeTiesToTheBarriersHasNoKnownError) {
  std::vector<MergeInput> inputs = {Input("0", 0, kNow + 10, kNow), Input("1", 1, kNow + 10, kNow)};
  inputs.push_back(Recorded("2", 2, "c", {kNow, kNow + 10}, {kNow, 0, 5}));
  auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->inputs[1].error_ns.has_value());
  EXPECT_FALSE(plan->inputs[2].error_ns.has_value());
  // The base of the barriers has spoken with the master, too.
  inputs[0].origin.master_clock.Take({kNow, 70, 5}, "t");
  plan = PlanMerge(inputs, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[2].shift_ns, -70);
  EXPECT_TRUE(plan->inputs[2].error_ns.has_value());
}

// Three machines whose clocks are off and drift, ranks that move between them, several files of each, native ones that
// asked nobody: at no moment of any file is it further from its place than is said.
TEST(MergePlan, TheStatedErrorIsNeverLessThanTheTrueOneInAThousandMerges) {
  constexpr double kSecond = 1e9;
  std::mt19937_64 random(TestSeed());
  const auto uniform = [&](double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  };
  int told = 0, drifting = 0;
  for (int round = 0; round < 1000; ++round) {
    struct Machine {
      double skew, drift, period;
      // How far the master is ahead, at the master's time since kNow.
      double Ahead(double at) const {
        return skew + drift * std::abs(std::fmod(at, period) - period / 2);
      }
    };
    std::vector<Machine> machines;
    for (int m = 0; m < 3; ++m) {
      machines.push_back({uniform(-5e9, 5e9), uniform(-0.99, 0.99) * kClockDriftMax,
                          uniform(10 * kSecond, 8000 * kSecond)});
    }
    struct File {
      std::size_t machine;
      double begin, end;  // the master's
    };
    std::vector<File> files;
    std::vector<MergeInput> inputs;
    const int count = 2 + static_cast<int>(uniform(0, 8));
    const bool asks_on = round % 2 == 0;
    for (int i = 0; i < count; ++i) {
      File file;
      file.machine = static_cast<std::size_t>(uniform(0, 3));
      // Some while others of that machine are written.
      const bool is_beside = i > 0 && uniform(0, 1) < 0.5;
      if (is_beside) file.machine = files.back().machine;
      file.begin = is_beside ? uniform(files.back().begin, files.back().end)
                             : uniform(100 * kSecond, 7300 * kSecond);
      file.end = file.begin + std::pow(10, uniform(8, 11.8));
      const Machine& machine = machines[file.machine];
      const auto own = [&](double at) {
        return kNow + static_cast<std::int64_t>(at - machine.Ahead(at));
      };
      MergeInput input = Input("file", static_cast<std::int32_t>(uniform(0, 4)), own(file.begin));
      input.origin.window = {own(file.begin), own(file.end)};
      input.machine = std::string(1, static_cast<char>('a' + file.machine));
      input.origin.is_native = uniform(0, 1) < 0.3;
      if (!input.origin.is_native) {
        // Asked some time before, over ways of different length.
        const double there = uniform(0, 2e6), back = uniform(0, 2e6);
        const double stamped = file.begin - uniform(0, 100 * kSecond);
        const double middle = stamped - there + (there + back) / 2;
        const double ahead = machine.Ahead(stamped) + stamped - middle;
        for (const double at : {file.begin, file.end}) {
          input.origin.master_clock.Take(
              {own(at), static_cast<std::int64_t>(ahead),
               static_cast<std::int64_t>((there + back) / 2 + (at - middle) * kClockDriftMax) + 10},
              "t");
          if (!asks_on) continue;
          // And again, right then.
          input.origin.master_clock.Take(
              {own(at), static_cast<std::int64_t>(machine.Ahead(at)), 1'000'000}, "t");
        }
      }
      files.push_back(file);
      inputs.push_back(std::move(input));
    }
    const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
    ASSERT_TRUE(plan.ok()) << plan.status();
    // Whose time line it is: of what is not off.
    std::optional<std::size_t> base;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (plan->inputs[i].error_ns != 0) continue;
      if (!base) base = i;
      EXPECT_EQ(files[i].machine, files[*base].machine);
    }
    for (std::size_t i = 0; base && i < inputs.size(); ++i) {
      if (!plan->inputs[i].error_ns.has_value()) continue;
      ++told;
      const Machine& own = machines[files[i].machine];
      const Machine& line = machines[files[*base].machine];
      for (int part = 0; part <= 10; ++part) {
        const double at = files[i].begin + (files[i].end - files[i].begin) * part / 10;
        const PlacedInput& placed = plan->inputs[i];
        const double own_at = at - own.Ahead(at);
        const double since = own_at - static_cast<double>(placed.window.begin - kNow);
        drifting += part == 0 && placed.drift != 0 ? 1 : 0;
        const double off = own_at + static_cast<double>(placed.shift_ns) + placed.drift * since -
                           (at - line.Ahead(at));
        EXPECT_LE(std::abs(off), static_cast<double>(*plan->inputs[i].error_ns) + 20)
            << "round " << round << ", input " << i;
      }
    }
  }
  EXPECT_GT(told, 1000) << "most are placed";
  EXPECT_GT(drifting, 100) << "many along a drift";
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

TEST(MergePlan, ACaptureWithinARunHasRowsOfItsOwnAndTheNextCycleHasNot) {
  const auto at = [](const char* label, std::int64_t begin, std::int64_t end) {
    MergeInput input = Input(label, 3, kNow + begin * kUs);
    input.origin.window = {kNow + begin * kUs, kNow + end * kUs};
    return input;
  };
  // A loader's span goes on into the next cycle.
  const auto plan = PlanMerge({at("capture", 500, 600), at("cycle", 0, 1000), at("next", 990, 2000),
                               at("short", 1995, 2010), at("other capture", 1200, 1300)},
                              MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  const std::int32_t cycle = plan->inputs[1].lane;
  EXPECT_EQ(plan->inputs[2].lane, cycle);
  EXPECT_EQ(plan->inputs[3].lane, cycle);
  EXPECT_NE(plan->inputs[0].lane, cycle);
  EXPECT_EQ(plan->inputs[4].lane, plan->inputs[0].lane);
  ASSERT_EQ(plan->notes.size(), 2u);
  EXPECT_THAT(plan->notes[0], HasSubstr("capture: rank 3 is there twice"));
}

TEST(MergePlan, TimesOfTheMergedTraceArePositive) {
  MergeInput input = Input("a", 0, kNow);
  input.origin.window = {kNow - kDayNs, kNow + 1};
  const auto plan = PlanMerge({input}, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok());
  EXPECT_LT(plan->base_time_ns, kNow - kDayNs);
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
      {{Input("a", 0, kNow), no_time},
       "y.json: it has no event with a time, in microseconds before the year 2262"},
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
