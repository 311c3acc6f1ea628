#include "client/agent/native_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kCapture = 0x1234'0000'0007;
constexpr std::uint64_t kMs = 1'000'000;
constexpr absl::Duration kDeadline = absl::Seconds(100);

class NativeCaptureTest : public ::testing::Test {
 protected:
  struct Asked {
    std::uint32_t request = 0;
    std::int32_t first_batch = 0;
    std::int32_t step_count = 0;
    bool operator==(const Asked&) const = default;
  };
  std::int32_t Begin() { return native_.Begin(kCapture, kDeadline, 3, facts_); }
  void Answer(spool::CaptureOutcome outcome, std::uint32_t step_count = 0,
              std::uint32_t request = 7) {
    facts_.answer = spool::PackCaptureAnswer(request, outcome, step_count);
  }
  std::string ReasonAt(absl::Duration now) {
    const auto report = native_.GoOn(facts_, now);
    if (!report) return "";
    EXPECT_EQ(report->capture(), kCapture);
    EXPECT_TRUE(report->native());
    EXPECT_EQ(report->progress(), pb::CAPTURE_PROGRESS_FAILED);
    return report->reason();
  }
  std::string Reason() { return ReasonAt(absl::Seconds(1)); }

  NativeCapture::Facts facts_{.is_offered = true, .typical_step_ns = 100 * kMs};
  std::vector<Asked> asked_;
  NativeCapture native_{[this](std::uint32_t request, std::int32_t first, std::int32_t count) {
    asked_.push_back({request, first, count});
  }};
};

TEST_F(NativeCaptureTest, TheFirstStepIsOneThatHasNotBegunWhenTheProcessHearsOfIt) {
  const struct {
    std::uint64_t step_ns;
    std::uint64_t running_ns;
    std::int32_t lead;
  } rows[] = {
      {100 * kMs, 0, 8},              // the rest of the one that runs, and seven more
      {100 * kMs, 90 * kMs, 9},       // what three quarters of a second have
      {1 * kMs, 0, 750},              //
      {2'000 * kMs, 0, 1},            // the next one begins in two seconds
      {2'000 * kMs, 1'900 * kMs, 2},  // it does in a moment
      {2'000 * kMs, 9'000 * kMs, 2},  // it takes longer than the others did
      {0, 0, 15},                     // nothing is known of them
      {1, 0, 750'000},                // nonsense
  };
  for (const auto& row : rows) {
    facts_.typical_step_ns = row.step_ns;
    facts_.running_ns = row.running_ns;
    EXPECT_EQ(Begin(), row.lead) << row.step_ns << " " << row.running_ns;
  }
}

TEST_F(NativeCaptureTest, IsAskedOfTheProcessOnceItsStepsAreKnown) {
  Begin();
  EXPECT_EQ(Reason(), "");
  EXPECT_THAT(asked_, IsEmpty());
  Answer(spool::kCaptureHandedOver, 5);
  EXPECT_EQ(Reason(), "") << "it was not asked yet";
  facts_.answer = 0;
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  native_.SetSteps({.first_batch = 500, .step_count = 5});
  EXPECT_THAT(asked_, ElementsAre(Asked{7, 120, 5}));
  Answer(spool::kCaptureHandedOver, 5, 6);
  EXPECT_EQ(Reason(), "") << "of another one";
  Answer(spool::kCaptureRunning);
  EXPECT_EQ(Reason(), "");
  Answer(spool::kCaptureHandedOver, 4);
  const auto report = native_.GoOn(facts_, absl::Seconds(1));
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->progress(), pb::CAPTURE_PROGRESS_RECORDED);
  EXPECT_EQ(report->step_count(), 4);
  EXPECT_EQ(report->last_batch(), 123);
  EXPECT_EQ(report->name(), "capture-ep0-ba124-rank3.pt.trace.json.gz");
  EXPECT_FALSE(native_.is_busy());
  EXPECT_EQ(native_.GoOn(facts_, absl::Seconds(1)), std::nullopt);
  EXPECT_EQ(asked_.back(), Asked{}) << "nothing is wanted any more";
}

TEST_F(NativeCaptureTest, AProcessThatCannotSaysWhy) {
  const struct {
    spool::CaptureOutcome outcome;
    const char* reason;
  } rows[] = {{spool::kCaptureNoProfiler, "NO_PROFILER"},
              {spool::kCaptureBusy, "PROFILER_BUSY"},
              {spool::kCaptureLate, "TOO_LATE"},
              {spool::kCaptureFailed, "PROFILER_FAILED"},
              {spool::kCaptureNotWritten, "NOT_WRITTEN"},
              {spool::kCaptureNoSteps, "NO_STEPS"},
              {spool::CaptureOutcome{99}, "PROFILER_FAILED"}};
  for (const auto& row : rows) {
    Begin();
    native_.SetSteps({.first_batch = 120, .step_count = 5});
    Answer(row.outcome);
    EXPECT_EQ(Reason(), row.reason);
    EXPECT_FALSE(native_.is_busy());
  }
  facts_.is_offered = false;
  EXPECT_EQ(Begin(), 0);
  asked_.clear();
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  EXPECT_EQ(Reason(), "NO_PROFILER");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(NativeCaptureTest, WhoseFileWouldNotBeTakenIsNotAsked) {
  facts_.may_take = false;
  EXPECT_EQ(Begin(), 0);
  asked_.clear();
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  EXPECT_EQ(Reason(), "ALL_USERS_AGENT");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(NativeCaptureTest, StepsThatDoNotComeAndProcessesThatEndAreNotWaitedFor) {
  Begin();
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  EXPECT_EQ(ReasonAt(kDeadline - absl::Seconds(1)), "");
  EXPECT_EQ(ReasonAt(kDeadline), "NO_STEPS");
  EXPECT_EQ(asked_.back(), Asked{}) << "it does not begin later";
  // What is written by then has its time.
  Begin();
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  Answer(spool::kCaptureRunning);
  EXPECT_EQ(ReasonAt(kDeadline), "");
  EXPECT_EQ(ReasonAt(kDeadline + NativeCapture::kWritePatience), "PROFILE_MISSING");
  Begin();
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  facts_.is_live = false;
  EXPECT_EQ(Reason(), "WRITER_ENDED");
  // It handed over what it had.
  Begin();
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  Answer(spool::kCaptureHandedOver, 2);
  EXPECT_EQ(native_.GoOn(facts_, absl::Seconds(1))->step_count(), 2);
}

TEST_F(NativeCaptureTest, AnAnswerBeyondWhatWasAskedIsTamed) {
  Begin();
  native_.SetSteps({.first_batch = INT32_MAX - 1, .step_count = 5});
  Answer(spool::kCaptureHandedOver, 0xffffff);
  const auto report = native_.GoOn(facts_, absl::Seconds(1));
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->step_count(), 5);
  EXPECT_EQ(report->last_batch(), INT32_MAX);
}

TEST_F(NativeCaptureTest, WhatIsDroppedIsWantedNoMoreAndToldToNobody) {
  Begin();
  native_.SetSteps({.first_batch = 120, .step_count = 5});
  native_.Drop();
  EXPECT_EQ(asked_.back(), Asked{});
  Answer(spool::kCaptureHandedOver, 5);
  EXPECT_EQ(native_.GoOn(facts_, absl::Seconds(1)), std::nullopt);
}

}  // namespace
}  // namespace stepwell::agent
