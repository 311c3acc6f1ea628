// The cases of the TensorBoard plugin's own tests, whose figures are its rules.
#include "base/trace/step_breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;

class StepBreakdownTest : public ::testing::Test {
 protected:
  void Take(const std::string& category, const std::string& name, int begin_us, int length_us,
            int correlation = 0, int external_id = 0) {
    const std::string event = absl::StrCat(
        "{\"ph\":\"X\",\"cat\":\"", category, "\",\"name\":\"", name, "\",\"ts\":", begin_us,
        ",\"dur\":", length_us, ",\"pid\":1,\"tid\":1,\"args\":{\"correlation\":", correlation,
        ",\"External id\":", external_id, "}}");
    ASSERT_TRUE(parser_.Parse(event)) << event;
    breakdown_.TakeEvent(parser_.event());
  }
  void Step(int begin_us, int length_us) {
    Take("user_annotation", absl::StrCat("ProfilerStep#", ++step_), begin_us, length_us);
  }
  void Op(int begin_us, int length_us) { Take("cpu_op", "aten::add", begin_us, length_us); }
  void Runtime(int begin_us, int length_us, int correlation = 0) {
    Take("cuda_runtime", "cudaLaunchKernel", begin_us, length_us, correlation);
  }
  void Kernel(int begin_us, int length_us, int correlation = 0) {
    Take("kernel", "sgemm", begin_us, length_us, correlation);
  }

  // Kernel, memcpy, memset, communication, runtime, loader, processor, other, and the whole, in microseconds.
  static std::vector<std::int64_t> Costs(const StepTimes& step) {
    std::vector<std::int64_t> costs;
    for (const std::int64_t ns : step.class_ns) costs.push_back(ns / 1000);
    costs.push_back(step.length_ns() / 1000);
    return costs;
  }

  TraceEventParser parser_;
  StepBreakdown breakdown_;
  int step_ = 0;
};

// Whose kernels communicate is known without them.
TEST_F(StepBreakdownTest, CollectivesAreToldWhereTheyAreAskedFor) {
  const auto report = [](bool tells) {
    StepBreakdown breakdown({.tells_collectives = tells});
    TraceEventParser parser;
    for (const char* event :
         {R"({"ph":"X","cat":"cpu_op","name":"nccl:all_reduce","ts":0,"dur":10,"pid":1,"tid":1,)"
          R"("args":{"External id":7}})",
          R"({"ph":"X","cat":"kernel","name":"any","ts":5,"dur":20,"pid":0,"tid":1,)"
          R"("args":{"External id":7}})"}) {
      EXPECT_TRUE(parser.Parse(event));
      breakdown.TakeEvent(parser.event());
    }
    return breakdown.Finish();
  };
  EXPECT_EQ(report(true).collectives.size(), 1U);
  EXPECT_EQ(report(true).collective_names.size(), 1U);
  EXPECT_TRUE(report(false).collectives.empty());
  EXPECT_TRUE(report(false).collective_names.empty());
  EXPECT_EQ(report(false).steps.at(0).communicating_ns, report(true).steps.at(0).communicating_ns);
  EXPECT_EQ(report(false).steps.at(0).computing_ns, 0);
}

TEST_F(StepBreakdownTest, AllClasses) {
  Step(50, 400);
  Take("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 180);
  Op(200, 60);
  Op(340, 70);
  Runtime(360, 20, 1);
  Runtime(390, 10, 2);
  Runtime(405, 5, 3);
  Take("gpu_memcpy", "Memcpy HtoD", 405, 10, 1);
  Take("gpu_memset", "Memset", 420, 5, 2);
  Kernel(430, 15, 3);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_EQ(report.steps[0].name, "ProfilerStep#1");
  EXPECT_THAT(Costs(report.steps[0]), ElementsAre(15, 10, 5, 0, 30, 180, 35, 125, 400));
  EXPECT_TRUE(report.has_device);
  EXPECT_EQ(report.device_busy_ns, 30'000);
  EXPECT_EQ(report.device_span_ns, 40'000);
  EXPECT_EQ(report.steps[0].idle_ns, 370'000);
  EXPECT_EQ(SumOf(report).idle_ns, 370'000);
}

// As a training of processors alone, over Gloo.
TEST_F(StepBreakdownTest, WithoutKernelsOperatorsCompute) {
  Step(0, 1000);
  Op(0, 600);
  Take("cpu_op", "gloo:all_reduce", 400, 400);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_EQ(report.steps[0].computing_ns, 600'000);
  EXPECT_EQ(report.steps[0].communicating_ns, 400'000);
  EXPECT_EQ(report.steps[0].overlap_ns, 200'000);
  EXPECT_EQ(report.steps[0].idle_ns, std::nullopt);
  EXPECT_EQ(SumOf(report).idle_ns, std::nullopt);
}

TEST_F(StepBreakdownTest, ARuntimeCallOfTheStepItself) {
  Step(100, 300);
  Runtime(130, 20, 1);
  Kernel(220, 8, 1);
  EXPECT_THAT(Costs(breakdown_.Finish().steps.at(0)), ElementsAre(8, 0, 0, 0, 20, 0, 0, 272, 300));
}

TEST_F(StepBreakdownTest, WithoutStepsEverythingIsOne) {
  Op(100, 60);
  Op(300, 70);
  Runtime(310, 20, 1);
  Kernel(320, 100, 1);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_THAT(Costs(report.steps[0]), ElementsAre(100, 0, 0, 0, 10, 0, 70, 140, 320));
}

TEST_F(StepBreakdownTest, TheProcessorAlone) {
  Step(300, 100);
  Op(350, 40);
  Op(120, 10);
  step_ = 0;
  Step(100, 200);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_THAT(Costs(report.steps[0]), ElementsAre(0, 0, 0, 0, 0, 0, 10, 190, 200));
  EXPECT_THAT(Costs(report.steps[1]), ElementsAre(0, 0, 0, 0, 0, 0, 40, 60, 100));
  EXPECT_FALSE(report.has_device);
}

TEST_F(StepBreakdownTest, AStepEndsWithWhatItLaunched) {
  Step(100, 200);
  Op(200, 60);
  Runtime(250, 5, 1);
  Take("gpu_memcpy", "Memcpy", 280, 40, 1);
  Step(350, 150);
  Op(360, 50);
  Runtime(400, 5, 2);
  Kernel(410, 200, 2);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_THAT(Costs(report.steps[0]), ElementsAre(0, 40, 0, 0, 5, 0, 55, 120, 220));
  EXPECT_THAT(Costs(report.steps[1]), ElementsAre(200, 0, 0, 0, 5, 0, 45, 10, 260));
}

TEST_F(StepBreakdownTest, StepsAtTheEndWithoutTheirKernelsAreLeftOut) {
  Step(100, 200);
  Step(300, 100);
  Step(400, 50);
  Op(120, 10);
  Kernel(90, 20, 7);
  Runtime(125, 5, 1);
  Kernel(150, 180, 1);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_EQ(report.steps[0].length_ns(), 220'000);
  EXPECT_EQ(report.steps_left_out, 2);
}

TEST_F(StepBreakdownTest, CommunicationIsItsOperatorsAndTheirKernels) {
  Take("cpu_op", "nccl:broadcast", 0, 75, 0, 1);
  Take("kernel", "broadcast_kernel", 16, 16, 0, 1);
  Op(100, 20);
  Kernel(130, 161);
  Take("cpu_op", "nccl:all_reduce", 160, 75, 0, 2);
  Take("kernel", "reduce_kernel", 162, 1556, 0, 2);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_THAT(Costs(report.steps[0]), ElementsAre(105, 0, 0, 75, 0, 0, 20, 35, 235));
  // Computation alone, both, communication alone, neither.
  EXPECT_EQ(report.steps[0].computing_ns, 105'000);
  EXPECT_EQ(report.steps[0].overlap_ns, 75'000);
  EXPECT_EQ(report.steps[0].communicating_ns, 150'000);
}

TEST_F(StepBreakdownTest, ADataPipeIsALoaderToo) {
  Step(0, 200);
  Take("cpu_op", "enumerate(DataPipe)#ShufflerIterDataPipe", 100, 23);
  EXPECT_THAT(Costs(breakdown_.Finish().steps.at(0)), ElementsAre(0, 0, 0, 0, 0, 23, 0, 177, 200));
}

TEST_F(StepBreakdownTest, AbsurdTimesCountForNothing) {
  Op(100, 60);
  for (const char* times : {"\"ts\":-9e15,\"dur\":9e15", "\"ts\":9e15,\"dur\":1",
                            "\"ts\":1,\"dur\":9e15", "\"ts\":1,\"dur\":-1"}) {
    const std::string event =
        absl::StrCat("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",", times, "}");
    ASSERT_TRUE(parser_.Parse(event));
    breakdown_.TakeEvent(parser_.event());
  }
  const StepReport report = breakdown_.Finish();
  EXPECT_FALSE(report.has_device);
  EXPECT_EQ(report.steps.at(0).length_ns(), 60'000);
}

TEST_F(StepBreakdownTest, StepsThatOverlapEndWhereTheNextBegins) {
  Step(100, 1000);
  Step(200, 1000);
  Step(300, 50);
  Op(150, 100);
  const StepReport report = breakdown_.Finish();
  ASSERT_EQ(report.steps.size(), 3u);
  EXPECT_THAT(Costs(report.steps[0]), ElementsAre(0, 0, 0, 0, 0, 0, 50, 50, 100));
  EXPECT_THAT(Costs(report.steps[1]), ElementsAre(0, 0, 0, 0, 0, 0, 50, 50, 100));
  EXPECT_THAT(Costs(report.steps[2]), ElementsAre(0, 0, 0, 0, 0, 0, 0, 50, 50));
}

TEST_F(StepBreakdownTest, MoreStepsThanAnyoneLooksAtAreCountedAndLeftOut) {
  for (std::size_t i = 0; i <= StepBreakdown::kStepsMax; ++i) {
    Take("user_annotation", "ProfilerStep#1", 1, 1000);
  }
  const StepReport report = breakdown_.Finish();
  EXPECT_EQ(report.steps.size(), StepBreakdown::kStepsMax);
  EXPECT_EQ(report.events_over_bound, 1);
}

TEST_F(StepBreakdownTest, NothingThatCountsGivesNoSteps) {
  Take("python_function", "main.py: train", 0, 100);
  const StepReport report = breakdown_.Finish();
  EXPECT_TRUE(report.steps.empty());
  EXPECT_FALSE(report.has_device);
}

}  // namespace
}  // namespace stepwell
