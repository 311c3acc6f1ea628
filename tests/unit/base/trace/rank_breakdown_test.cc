// The cases of the TensorBoard plugin's own tests of several workers, whose figures are its rules, and what it gives up on.
#include "base/trace/rank_breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using Figures = std::vector<std::int64_t>;

// What a profiler saw of one rank. Times are microseconds.
class Seen {
 public:
  Seen& Add(const char* category, const char* name, int begin_us, std::int64_t length_us,
            const std::string& args = "") {
    const std::string event = absl::StrCat("{\"ph\":\"X\",\"cat\":\"", category, "\",\"name\":\"",
                                           name, "\",\"ts\":", begin_us, ",\"dur\":", length_us,
                                           ",\"pid\":1,\"tid\":1,\"args\":{", args, "}}");
    EXPECT_TRUE(parser_.Parse(event)) << event;
    breakdown_.TakeEvent(parser_.event());
    return *this;
  }
  Seen& Op(const char* name, int begin_us, int length_us, int id = 0) {
    return Add("cpu_op", name, begin_us, length_us, absl::StrCat("\"External id\":", id));
  }
  Seen& Kernel(const char* name, int begin_us, int length_us, int id = 0) {
    return Add("Kernel", name, begin_us, length_us, absl::StrCat("\"external id\":", id));
  }
  Seen& Step(const char* name, int begin_us, int length_us) {
    return Add("user_annotation", name, begin_us, length_us);
  }
  StepReport Finish() { return breakdown_.Finish(); }

 private:
  TraceEventParser parser_;
  StepBreakdown breakdown_{{.tells_collectives = true}};
};

RankReport Of(Seen& zero, Seen& one) {
  RankBreakdown breakdown;
  breakdown.Add(0, zero.Finish());
  breakdown.Add(1, one.Finish());
  return breakdown.Finish();
}

// Computation, both, communication, neither, in microseconds.
Figures Overlap(const RankRow& row) {
  EXPECT_EQ(
      row.sum.computation_ns + row.sum.overlap_ns + row.sum.communication_ns + row.sum.other_ns,
      row.sum.length_ns);
  return {row.sum.computation_ns / 1000, row.sum.overlap_ns / 1000, row.sum.communication_ns / 1000,
          row.sum.other_ns / 1000};
}

Figures Waits(const RankRow& row) { return {row.sum.transfer_ns / 1000, row.sum.wait_ns / 1000}; }

// Calls, transfer, wait.
Figures Of(const RankRow& row, const char* name) {
  const auto found = row.collectives.find(name);
  if (found == row.collectives.end()) return {};
  return {found->second.call_count, found->second.transfer_ns / 1000, found->second.wait_ns / 1000};
}

TEST(RankBreakdownTest, Nccl) {
  Seen zero, one;
  zero.Op("nccl:broadcast", 0, 75, 146)
      .Kernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", 16, 16, 146)
      .Op("aten::add_", 100, 20, 24504)
      .Kernel("void at::native::vectorized_elementwise_kernel", 130, 161, 24504)
      .Op("nccl:all_reduce", 160, 75, 2513)
      .Kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 162, 1556, 2513);
  one.Op("nccl:broadcast", 0, 20, 146)
      .Kernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", 8, 31, 146)
      .Op("aten::add_", 25, 20, 24504)
      .Kernel("void at::native::vectorized_elementwise_kernel", 30, 161, 24504)
      .Op("nccl:all_reduce", 160, 75, 2513)
      .Kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 562, 1058, 2513);
  const RankReport report = Of(zero, one);
  EXPECT_THAT(Overlap(report.ranks[0]), ElementsAre(30, 75, 75, 55));
  EXPECT_THAT(Overlap(report.ranks[1]), ElementsAre(121, 40, 74, 0));
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(1169, 464));
  EXPECT_THAT(Waits(report.ranks[1]), ElementsAre(1169, 3));
  EXPECT_THAT(Of(report.ranks[0], "nccl:broadcast"), ElementsAre(1, 36, 39));
  EXPECT_THAT(Of(report.ranks[0], "nccl:all_reduce"), ElementsAre(1, 1133, 425));
  EXPECT_THAT(Of(report.ranks[1], "nccl:broadcast"), ElementsAre(1, 36, 3));
  EXPECT_THAT(Of(report.ranks[1], "nccl:all_reduce"), ElementsAre(1, 1133, 0));
  EXPECT_EQ(report.unmatched_count, 0);
}

void GlooOfZero(Seen& zero) {
  zero.Op("gloo:broadcast", 16, 38, 165)
      .Op("gloo:broadcast", 25, 36, 166)
      .Op("gloo:broadcast", 66, 18, 167)
      .Op("aten::add_", 0, 20, 24504)
      .Op("gloo:all_reduce", 110, 18, 2513)
      .Op("gloo:all_reduce", 120, 36, 2516);
}

void GlooOfOne(Seen& one) {
  one.Op("gloo:broadcast", 20, 28, 256)
      .Op("gloo:broadcast", 28, 30, 257)
      .Op("gloo:broadcast", 77, 6, 258)
      .Op("aten::add_", 0, 30, 24504)
      .Op("gloo:all_reduce", 88, 38, 2513)
      .Op("gloo:all_reduce", 130, 16, 2516);
}

TEST(RankBreakdownTest, GlooBesideAGpu) {
  Seen zero, one;
  GlooOfZero(zero);
  GlooOfOne(one);
  zero.Kernel("void at::native::vectorized_elementwise_kernel", 30, 101, 24504);
  one.Kernel("void at::native::vectorized_elementwise_kernel", 70, 70, 24504);
  const RankReport report = Of(zero, one);
  EXPECT_THAT(Overlap(report.ranks[0]), ElementsAre(31, 70, 39, 16));
  EXPECT_THAT(Overlap(report.ranks[1]), ElementsAre(16, 54, 44, 32));
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(75, 34));
  EXPECT_THAT(Waits(report.ranks[1]), ElementsAre(78, 20));
  EXPECT_THAT(Of(report.ranks[0], "gloo:broadcast"), ElementsAre(3, 41, 63 - 41));
  EXPECT_THAT(Of(report.ranks[1], "gloo:all_reduce"), ElementsAre(2, 34, 54 - 34));
}

// Where no kernel computes the processor's operators do.
TEST(RankBreakdownTest, GlooOfProcessorsAlone) {
  Seen zero, one;
  GlooOfZero(zero);
  GlooOfOne(one);
  zero.Op("aten::mul", 30, 101);
  one.Op("aten::mul", 70, 70);
  const RankReport report = Of(zero, one);
  EXPECT_THAT(Overlap(report.ranks[0]), ElementsAre(47, 74, 35, 0));
  EXPECT_THAT(Overlap(report.ranks[1]), ElementsAre(36, 64, 34, 12));
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(75, 34));
  EXPECT_THAT(Waits(report.ranks[1]), ElementsAre(78, 20));
}

// Kineto of today joins kernels to an operator that is not named for NCCL; of the one that is it tells the launch.
TEST(RankBreakdownTest, KernelsOfTodayStandForThemselves) {
  const auto see = [](Seen& seen, int begin_us, int length_us) {
    seen.Op("record_param_comms", 0, 50, 7).Add("user_annotation", "nccl:all_reduce", 0, 50);
    seen.Add("cuda_runtime", "cudaLaunchKernelExC", 10, 5, "\"correlation\":3");
    seen.Add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
             begin_us, length_us,
             "\"External id\":7,\"correlation\":3,\"Collective name\":\"allreduce\","
             "\"Process Group Name\":\"0\"");
    seen.Add("kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 2000, 100);
    seen.Op("aten::add", 60, 40);
  };
  Seen zero, one;
  see(zero, 20, 900);
  see(one, 620, 300);
  const RankReport report = Of(zero, one);
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(300, 600));
  EXPECT_THAT(Waits(report.ranks[1]), ElementsAre(300, 0));
  EXPECT_THAT(Of(report.ranks[0], "allreduce"), ElementsAre(1, 300, 600));
  EXPECT_EQ(report.ranks[0].collectives.size(), 1U);
}

TEST(RankBreakdownTest, StepsAreMatchedByNameAndWhatIsNotOfAllIsLeftOut) {
  Seen zero, one;
  zero.Step("ProfilerStep#4", 0, 100).Op("gloo:all_reduce", 10, 50);
  zero.Step("ProfilerStep#5", 100, 100).Op("gloo:all_reduce", 110, 80);
  zero.Step("ProfilerStep#6", 200, 100).Op("gloo:all_reduce", 210, 10);
  // Its clock is another one, and it saw a step later. Of #6 it has two, nobody knows which of them.
  one.Step("ProfilerStep#5", 9100, 100).Op("gloo:all_reduce", 9120, 30);
  one.Step("ProfilerStep#6", 9200, 100).Op("gloo:all_reduce", 9210, 10);
  one.Op("gloo:all_reduce", 9230, 10);
  const RankReport report = Of(zero, one);
  ASSERT_EQ(report.ranks[0].steps.size(), 3U);
  EXPECT_EQ(report.ranks[0].steps[1].name, "ProfilerStep#5");
  EXPECT_EQ(report.ranks[0].steps[1].times.transfer_ns, 30'000);
  EXPECT_EQ(report.ranks[0].steps[1].times.wait_ns, 50'000);
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(30, 50));
  EXPECT_THAT(Waits(report.ranks[1]), ElementsAre(30, 0));
  // #4 of rank 0, and all of #6.
  EXPECT_EQ(report.unmatched_count, 1 + 3);
}

TEST(RankBreakdownTest, GroupsOfProcessesAndTracesOfOneRankAreKeptApart) {
  const auto see = [](const char* group, int length_us) {
    Seen seen;
    seen.Add("cpu_op", "gloo:all_reduce", 0, length_us,
             absl::StrCat("\"Process Group Name\":\"", group, "\""));
    return seen.Finish();
  };
  RankBreakdown breakdown;
  // Of two traces each, the second without steps' names, too.
  for (const int times : {1, 10}) {
    breakdown.Add(0, see("left", 40 * times));
    breakdown.Add(1, see("left", 30 * times));
    breakdown.Add(2, see("right", 20 * times));
    breakdown.Add(3, see("right", 20 * times));
  }
  const RankReport report = breakdown.Finish();
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(330, 110));
  EXPECT_THAT(Waits(report.ranks[1]), ElementsAre(330, 0));
  EXPECT_THAT(Waits(report.ranks[2]), ElementsAre(220, 0));
  EXPECT_THAT(Of(report.ranks[3], "gloo:all_reduce"), ElementsAre(2, 220, 0));
  EXPECT_EQ(report.unmatched_count, 0);
}

// A device lags behind its processor, on each rank by as much as it likes.
TEST(RankBreakdownTest, AKernelIsOfTheStepThatLaunchedIt) {
  const auto see = [](Seen& seen, int begin_us, int length_us) {
    seen.Step("ProfilerStep#1", 0, 100);
    seen.Add("cuda_runtime", "cudaLaunchKernel", 10, 5, "\"correlation\":1");
    seen.Add("cuda_runtime", "cudaLaunchKernel", 120, 5, "\"correlation\":2");
    seen.Step("ProfilerStep#2", 100, 100);
    seen.Add("kernel", "gemm", 20, 400, "\"correlation\":1");
    seen.Add("kernel", "ncclDevKernel_AllGather_RING_LL", begin_us, length_us, "\"correlation\":2");
  };
  Seen zero, one;
  see(zero, 130, 500);
  see(one, 430, 200);
  const RankReport report = Of(zero, one);
  EXPECT_EQ(report.ranks[0].steps[0].times.wait_ns, 0);
  EXPECT_EQ(report.ranks[0].steps[1].times.wait_ns, 300'000);
  EXPECT_EQ(report.unmatched_count, 0);
}

// Two traces of one step each, read by turns: the first of one rank is the first of the other.
TEST(RankBreakdownTest, TracesOfRanksMayComeByTurns) {
  const auto see = [](int length_us) {
    Seen seen;
    seen.Step("ProfilerStep#1", 0, 100).Op("gloo:all_reduce", 0, length_us);
    return seen.Finish();
  };
  RankBreakdown breakdown;
  breakdown.Add(0, see(10));
  breakdown.Add(1, see(30));
  breakdown.Add(0, see(50));
  breakdown.Add(1, see(40));
  const RankReport report = breakdown.Finish();
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(10 + 40, 10));
  EXPECT_THAT(Waits(report.ranks[1]), ElementsAre(10 + 40, 20));
  EXPECT_EQ(report.unmatched_count, 0);
}

TEST(RankBreakdownTest, IdleIsAStepWithoutItsDevice) {
  Seen zero, one;
  zero.Step("ProfilerStep#1", 0, 100).Op("aten::mm", 0, 80);
  zero.Kernel("gemm", 20, 30).Add("gpu_memcpy", "Memcpy HtoD", 40, 20);
  one.Step("ProfilerStep#1", 0, 100).Op("aten::mm", 0, 80);
  const RankReport report = Of(zero, one);
  EXPECT_EQ(report.ranks[0].sum.idle_ns, 60'000);
  EXPECT_EQ(report.ranks[0].steps[0].times.idle_ns, 60'000);
  EXPECT_EQ(report.ranks[0].device_busy_ns, 40'000);
  EXPECT_EQ(report.ranks[0].device_span_ns, 40'000);
  // It has no device: nobody knows.
  EXPECT_EQ(report.ranks[1].sum.idle_ns, std::nullopt);
  EXPECT_EQ(report.ranks[1].device_span_ns, 0);
}

TEST(RankBreakdownTest, RangesOfAllRanksAreBound) {
  const auto see = [](std::size_t range_count) {
    StepReport report;
    report.steps.push_back({.name = "ProfilerStep#1", .end_ns = 10});
    report.collective_names.push_back({"all_reduce", ""});
    report.collectives.push_back({.ranges = std::vector<Interval>(range_count, {0, 1})});
    return report;
  };
  RankBreakdown breakdown;
  breakdown.Add(0, see(RankBreakdown::kRangesMax - 1));
  breakdown.Add(1, see(2));
  breakdown.Add(2, see(1));
  const RankReport report = breakdown.Finish();
  // The second finds no room: of the others nobody knows who waited for it.
  EXPECT_EQ(report.roomless_count, 3);
  EXPECT_EQ(report.unmatched_count, 0);
  for (const RankRow& row : report.ranks) EXPECT_TRUE(row.collectives.empty());
}

TEST(RankBreakdownTest, WhatFoundNoRoomFalsifiesNoWaitOfOthers) {
  const auto see = [](std::int64_t length, std::size_t first_count) {
    StepReport report;
    report.steps = {{.name = "a", .end_ns = 100}, {.name = "b", .begin_ns = 100, .end_ns = 200}};
    report.collective_names.push_back({"all_reduce", ""});
    if (first_count > 0) {
      report.collectives.push_back(
          {.step_no = 1, .ranges = std::vector<Interval>(first_count, {100, 101})});
    }
    report.collectives.push_back({.ranges = {{0, length}}});
    return report;
  };
  RankBreakdown breakdown;
  EXPECT_TRUE(breakdown.Add(0, see(50, 0)));
  EXPECT_TRUE(breakdown.Add(1, see(40, 0)));
  // It came last: it took 1 ns.
  EXPECT_TRUE(breakdown.Add(2, see(1, RankBreakdown::kRangesMax - 2)));
  const RankReport report = breakdown.Finish();
  EXPECT_EQ(report.roomless_count, 3);
  EXPECT_EQ(report.ranks[0].sum.wait_ns, 0);
  EXPECT_EQ(report.ranks[1].sum.wait_ns, 0);
}

TEST(RankBreakdownTest, ATraceWhoseStepsFoundNoRoomFalsifiesNoWaitOfOthers) {
  const auto see = [](std::int64_t length, std::size_t step_count) {
    StepReport report;
    report.steps.resize(step_count);
    report.steps.front() = {.name = "a", .end_ns = 100};
    report.collective_names.push_back({"all_reduce", ""});
    report.collectives.push_back({.ranges = {{0, length}}});
    return report;
  };
  RankBreakdown breakdown;
  EXPECT_TRUE(breakdown.Add(0, see(50, 1)));
  EXPECT_TRUE(breakdown.Add(1, see(40, 1)));
  EXPECT_FALSE(breakdown.Add(2, see(1, RankBreakdown::kStepsMax)));  // it came last
  const RankReport report = breakdown.Finish();
  EXPECT_EQ(report.roomless_count, 3);
  EXPECT_EQ(report.ranks[0].sum.wait_ns, 0);
  EXPECT_TRUE(report.ranks[2].steps.empty());
}

TEST(RankBreakdownTest, StepsOfAllRanksAreBound) {
  const auto see = [](std::size_t step_count) {
    StepReport report;
    report.steps.resize(step_count);
    return report;
  };
  RankBreakdown breakdown;
  EXPECT_TRUE(breakdown.Add(0, see(RankBreakdown::kStepsMax - 1)));
  EXPECT_FALSE(breakdown.Add(1, see(2)));
  EXPECT_TRUE(breakdown.Add(1, see(1)));
  const RankReport report = breakdown.Finish();
  EXPECT_EQ(report.ranks[0].steps.size(), RankBreakdown::kStepsMax - 1);
  EXPECT_EQ(report.ranks[1].steps.size(), 1U);
}

TEST(RankBreakdownTest, AbsurdTracesOfOneRankTogetherAreNoShortOnes) {
  RankBreakdown breakdown;
  for (int i = 0; i < 4; ++i) {
    StepReport report;
    report.has_device = true;
    report.device_busy_ns = report.device_span_ns = std::int64_t{3} << 61;
    report.steps.push_back({.name = "a",
                            .begin_ns = -(std::int64_t{1} << 61),
                            .end_ns = std::int64_t{1} << 62,
                            .computing_ns = std::int64_t{3} << 61,
                            .idle_ns = std::int64_t{3} << 61});
    breakdown.Add(0, std::move(report));
  }
  const RankReport report = breakdown.Finish();
  EXPECT_EQ(report.ranks[0].sum.length_ns, INT64_MAX);
  EXPECT_EQ(report.ranks[0].sum.computation_ns, INT64_MAX);
  EXPECT_EQ(report.ranks[0].sum.idle_ns, INT64_MAX);
  EXPECT_EQ(report.ranks[0].device_span_ns, INT64_MAX);
}

TEST(CollectiveCallsTest, AnOperatorWithMoreKernelsThanFindRoomIsLeftOutWhole) {
  TraceEventParser parser;
  ASSERT_TRUE(parser.Parse(R"({"ph":"X","name":"nccl:all_reduce","ts":0,"dur":1})"));
  CollectiveCalls calls;
  calls.TakeOperator(parser.event(), {0, 10}, 7);
  calls.TakeOperator(parser.event(), {20, 30}, 8);
  for (std::size_t i = 0; i <= CollectiveCalls::kRangesMax; ++i) {
    calls.TakeKernel(7, CollectiveCalls::kNoName, {2, 3}, std::nullopt);
  }
  // There is room again.
  calls.TakeKernel(8, CollectiveCalls::kNoName, {22, 23}, std::nullopt);
  EXPECT_EQ(calls.left_out_count(), 1);
  const std::vector<CollectiveCall> all = calls.Finish();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0].ranges, ElementsAre(Interval{20, 30}, Interval{22, 23}));
}

// 70 years each, in ten steps of two ranks.
TEST(RankBreakdownTest, AbsurdTimesTogetherAreNoSmallOnes) {
  const auto see = [](Seen& seen) {
    for (int i = 0; i < 10; ++i) {
      seen.Step(absl::StrCat("ProfilerStep#", i).c_str(), 10 * i, 10);
      seen.Op("gloo:all_reduce", 10 * i + 1, 1, 100 + i);
      seen.Add("kernel", "reduce", 10 * i + 1, 2'200'000'000'000'000,
               absl::StrCat("\"External id\":", 100 + i));
    }
  };
  Seen zero, one;
  see(zero);
  see(one);
  const RankReport report = Of(zero, one);
  EXPECT_EQ(report.ranks[0].sum.transfer_ns, INT64_MAX);
  EXPECT_EQ(report.ranks[0].collectives.at("gloo:all_reduce").transfer_ns, INT64_MAX);
  EXPECT_EQ(report.ranks[0].sum.wait_ns, 0);
}

TEST(RankBreakdownTest, ARankAloneWaitsForNobody) {
  Seen seen;
  seen.Op("gloo:all_reduce", 0, 40);
  RankBreakdown breakdown;
  breakdown.Add(0, seen.Finish());
  const RankReport report = breakdown.Finish();
  EXPECT_THAT(Waits(report.ranks[0]), ElementsAre(0, 0));
  EXPECT_TRUE(report.ranks[0].collectives.empty());
  EXPECT_EQ(report.unmatched_count, 1);
}

}  // namespace
}  // namespace stepwell
