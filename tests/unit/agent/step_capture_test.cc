#include "client/agent/step_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a trace would have.
class Seen final : public SpanSink {
 public:
  void EnterThread(const SpanThread& thread) override { thread_ = thread; }
  void AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
               std::int32_t batch) override {
    all.push_back(absl::StrCat(std::string(name), " ", batch, " ", begin_ns, "-", end_ns, " on ",
                               thread_.worker, ":", thread_.index));
  }
  void AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) override {
    all.push_back(absl::StrCat(std::string(name), " ", batch, " at ", time_ns, " on ",
                               thread_.worker, ":", thread_.index));
  }
  void AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) override {
    AddSpan("STEP", begin_ns, end_ns, batch);
  }
  void AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                double value) override {
    all.push_back(absl::StrCat(series, "=", value, unit, " at ", time_ns));
  }

  std::vector<std::string> all;

 private:
  SpanThread thread_;
};

// Each is 100 long and has one scope.
void Step(StepCapture& capture, std::int32_t batch, std::uint32_t thread = 0) {
  capture.EnterThread({.worker = -1, .index = thread});
  capture.AddSpan("forward", batch * 100 + 10, batch * 100 + 20, batch);
  capture.AddStep(batch * 100, batch * 100 + 100, batch);
}

std::vector<std::string> WhatOf(const StepCapture& capture) {
  Seen seen;
  capture.WriteTo(seen);
  return seen.all;
}

TEST(StepCaptureTest, HoldsWhatEndedBeforeTheStepsWereToldAndWaitsForWhatComesAfter) {
  StepCapture capture({});
  for (int batch = 3; batch <= 6; ++batch) Step(capture, batch);
  EXPECT_FALSE(capture.is_over());
  capture.SetSteps({.first_batch = 5, .step_count = 3});
  EXPECT_FALSE(capture.is_over());
  Step(capture, 7);
  EXPECT_TRUE(capture.is_over());
  Step(capture, 8);
  EXPECT_THAT(WhatOf(capture), ElementsAre("forward 5 510-520 on -1:0", "STEP 5 500-600 on -1:0",
                                           "forward 6 610-620 on -1:0", "STEP 6 600-700 on -1:0",
                                           "forward 7 710-720 on -1:0", "STEP 7 700-800 on -1:0"));
  const StepCapture::Totals totals = capture.totals();
  EXPECT_EQ(totals.first_batch, 5);
  EXPECT_EQ(totals.last_batch, 7);
  EXPECT_EQ(totals.step_count, 3);
  EXPECT_EQ(totals.span_count, 6);
  EXPECT_EQ(totals.left_out_count, 0);
}

TEST(StepCaptureTest, ARankThatIsFarAheadHasThemAllAlready) {
  StepCapture capture({});
  for (int batch = 3; batch <= 40; ++batch) Step(capture, batch);
  capture.SetSteps({.first_batch = 5, .step_count = 2});
  EXPECT_TRUE(capture.is_over());
  EXPECT_EQ(capture.totals().step_count, 2);
}

TEST(StepCaptureTest, WhatLiesOutsideAnyStepIsThereWhereItRanWhileTheStepsDid) {
  StepCapture capture({});
  capture.EnterThread({.worker = 2, .index = 1});
  capture.AddSpan("load", 100, 199, -1);  // before
  capture.AddSpan("load", 150, 200, -1);  // touches
  capture.AddValue("epoch", "", 150, 4);
  capture.AddValue("loss", "x", 250, 0.5);
  capture.SetSteps({.first_batch = 2, .step_count = 1});
  capture.AddStep(210, 220, 2);  // a worker counts by itself
  EXPECT_FALSE(capture.is_over());
  Step(capture, 2);
  capture.EnterThread({.worker = 2, .index = 1});
  capture.AddSpan("load", 290, 400, -1);
  capture.AddSpan("load", 301, 400, -1);  // after
  EXPECT_THAT(WhatOf(capture), ElementsAre("load -1 150-200 on 2:1", "loss=0.5x at 250",
                                           "step 2 210-220 on 2:1", "forward 2 210-220 on -1:0",
                                           "STEP 2 200-300 on -1:0", "load -1 290-400 on 2:1"));
  EXPECT_EQ(capture.totals().step_count, 1);
  EXPECT_EQ(capture.totals().epoch, 4);
}

TEST(StepCaptureTest, ValuesThatFindNoRoomAreCounted) {
  StepCapture::Options options;
  options.spans_max = 5;
  StepCapture capture(options);
  for (int i = 0; i < 13; ++i) capture.AddValue("loss", "x", 200 + i, i);
  Step(capture, 2);
  capture.SetSteps({.first_batch = 2, .step_count = 1});
  EXPECT_EQ(capture.totals().left_out_count, 3);
}

// An epoch is that of what follows it.
TEST(StepCaptureTest, ValuesComeAmongTheSpansWhereTheyCame) {
  StepCapture capture({});
  Step(capture, 1);
  capture.AddValue("epoch", "", 200, 5);
  Step(capture, 2);
  capture.AddValue("loss", "x", 300, 0.5);
  capture.SetSteps({.first_batch = 1, .step_count = 2});
  EXPECT_THAT(WhatOf(capture), ElementsAre("forward 1 110-120 on -1:0", "STEP 1 100-200 on -1:0",
                                           "epoch=5 at 200", "forward 2 210-220 on -1:0",
                                           "STEP 2 200-300 on -1:0", "loss=0.5x at 300"));
}

TEST(StepCaptureTest, InstantsComeWithTheStepsInWhichOrBesideWhichTheyWere) {
  StepCapture capture({});
  capture.EnterThread({.worker = 2, .index = 1});
  capture.AddInstant("early", 199, -1);
  capture.AddInstant("beside", 250, -1);
  capture.EnterThread({.worker = -1, .index = 0});
  capture.AddInstant("of another", 150, 1);
  capture.AddInstant("within", 212, 2);
  capture.SetSteps({.first_batch = 2, .step_count = 1});
  Step(capture, 2);
  EXPECT_THAT(WhatOf(capture), ElementsAre("beside -1 at 250 on 2:1", "within 2 at 212 on -1:0",
                                           "forward 2 210-220 on -1:0", "STEP 2 200-300 on -1:0"));
  EXPECT_EQ(capture.totals().span_count, 4);
}

TEST(StepCaptureTest, PassedStepsAreOverWithoutOne) {
  StepCapture capture({});
  capture.SetSteps({.first_batch = 5, .step_count = 2});
  Step(capture, 40);
  EXPECT_TRUE(capture.is_over());
  EXPECT_EQ(capture.totals().step_count, 0);
  EXPECT_THAT(WhatOf(capture), IsEmpty());
}

TEST(StepCaptureTest, BeyondItsBoundTheOldestGoesUntilTheStepsAreThere) {
  StepCapture capture({.spans_max = 5, .room = nullptr});
  for (int batch = 0; batch < 20; ++batch) Step(capture, batch);
  capture.SetSteps({.first_batch = 17, .step_count = 8});
  EXPECT_EQ(capture.totals().left_out_count, 0) << "they were none of them";
  for (int batch = 20; batch < 25; ++batch) Step(capture, batch);
  EXPECT_TRUE(capture.is_over());
  const StepCapture::Totals totals = capture.totals();
  EXPECT_EQ(totals.step_count, 8) << "no step is left out";
  EXPECT_EQ(totals.span_count, 8 + 5);
  EXPECT_EQ(totals.left_out_count, 3);
  EXPECT_EQ(totals.first_batch, 17);
}

TEST(StepCaptureTest, WhatMadeRoomBeforeTheStepsWereToldIsCounted) {
  StepCapture capture({.spans_max = 5, .room = nullptr});
  for (int batch = 0; batch < 20; ++batch) Step(capture, batch);
  capture.SetSteps({.first_batch = 12, .step_count = 8});
  EXPECT_TRUE(capture.is_over());
  EXPECT_EQ(capture.totals().first_batch, 12) << "as was promised";
  EXPECT_EQ(capture.totals().step_count, 8);
  EXPECT_EQ(capture.totals().span_count, 8 + 5);
  EXPECT_EQ(capture.totals().left_out_count, 3);
}

TEST(StepCaptureTest, WhatLiesOutsideAnyStepKeepsNoStepFromItsPlace) {
  StepCapture capture({.spans_max = 4, .outside_max = 4, .room = nullptr});
  capture.SetSteps({.first_batch = 1, .step_count = 3});
  for (int batch = 1; batch <= 3; ++batch) {
    capture.EnterThread({.worker = 0, .index = 1});
    for (int i = 0; i < 10; ++i) {
      capture.AddSpan("load", batch * 100 + i, batch * 100 + i + 1, -1);
    }
    Step(capture, batch);
  }
  const StepCapture::Totals totals = capture.totals();
  EXPECT_EQ(totals.step_count, 3);
  EXPECT_EQ(totals.span_count, 3 + 3 + 4);
  EXPECT_EQ(totals.left_out_count, 26);
}

TEST(StepCaptureTest, ARoomThatOthersFilledLeavesTheSteps) {
  const auto room = std::make_shared<CaptureRoom>(1000);
  room->Add(1000);
  {
    StepCapture capture({.room = room});
    capture.SetSteps({.first_batch = 1, .step_count = 2});
    Step(capture, 1);
    Step(capture, 2);
    EXPECT_EQ(capture.totals().step_count, 2);
    EXPECT_EQ(capture.totals().span_count, 2);
    EXPECT_EQ(capture.totals().left_out_count, 2);
    EXPECT_GT(room->bytes(), 1000);
  }
  EXPECT_EQ(room->bytes(), 1000) << "all is given back";
}

// A master that tells no steps, and a process that records as fast as it can.
TEST(StepCaptureTest, WhatNobodyToldTakesNoMoreThanTheRoom) {
  constexpr std::int64_t kRoom = 64 << 10;
  const auto room = std::make_shared<CaptureRoom>(kRoom);
  StepCapture capture({.room = room});
  for (int batch = 0; batch < 100'000; ++batch) {
    Step(capture, batch);
    capture.AddSpan(absl::StrCat("span ", batch), 100 * batch, 100 * batch + 1, batch);
    capture.AddValue(absl::StrCat("series ", batch), "", 100 * batch, 1);
  }
  // The steps that one may ask for are held beside it, and of batches how many spans were given up.
  EXPECT_LT(room->bytes(), kRoom + StepCapture::kStepsMax * 64 + 2'000 * 64 + 1'000);
  capture.SetSteps({.first_batch = 99'990, .step_count = 10});
  EXPECT_EQ(capture.totals().step_count, 10);
}

TEST(StepCaptureTest, WhatTheRingsLostWhileTheStepsRanIsLeftOut) {
  StepCapture capture({});
  capture.SetSteps({.first_batch = 5, .step_count = 2});
  capture.AddLoss(1, 100, 499);  // before
  capture.AddLoss(2, 400, 500);  // touches
  capture.AddLoss(4, INT64_MIN, INT64_MAX);
  capture.AddLoss(8, 700, 710);
  capture.AddLoss(16, 701, INT64_MAX);  // after
  Step(capture, 5);
  Step(capture, 6);
  EXPECT_EQ(capture.totals().left_out_count, 2 + 4 + 8);
}

}  // namespace
}  // namespace stepwell::agent
