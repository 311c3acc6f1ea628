#include "client/agent/rank_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/recorder/src/spool_format.h"
#include "tests/unit/base/trace/perfetto_reading.h"

namespace stepwell::agent {
namespace {

using stepwell::testing::PerfettoReading;
using stepwell::testing::PerfettoTrace;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RankCaptureTest : public ::testing::Test {
 protected:
  RankCaptureTest() {
    identity_.rank = 3;
    identity_.project = "p";
    identity_.trial = "t";
  }
  static pb::Capture Asked(std::uint64_t number, std::int32_t first_batch = 0,
                           std::int32_t step_count = 0) {
    pb::Capture asked;
    asked.set_capture(number);
    asked.set_first_batch(first_batch);
    asked.set_step_count(step_count);
    asked.set_timeout_ms(30'000);
    return asked;
  }
  void Step(std::int32_t batch) {
    if (capture_.sink() == nullptr) return;
    const std::int64_t begin_ns = capture_.anchor().realtime_us * 1000 + batch * 1000;
    capture_.sink()->EnterThread({.worker = -1, .index = 0});
    capture_.sink()->AddSpan("forward", begin_ns + 100, begin_ns + 200, batch);
    capture_.sink()->AddStep(begin_ns, begin_ns + 1000, batch);
    facts_.last_batch = batch;
  }
  void Follow(const std::optional<pb::Capture>& asked) { capture_.Follow(asked, facts_); }

  WriterIdentity identity_;
  FakeClock clock_;
  ClockOffset offset_;
  RankCapture::Facts facts_{.last_batch = 7};
  std::vector<pb::CaptureReport> reports_;
  std::vector<CapturedTrace> traces_;
  std::vector<std::int32_t> asked_of_process_;
  const std::shared_ptr<CaptureRoom> room_ = std::make_shared<CaptureRoom>();
  RankCapture capture_{
      identity_,
      clock_,
      offset_,
      {.teller = [this]() -> RankCapture::Tell {
         return [this](pb::CaptureReport report) { reports_.push_back(report); };
       },
       .hand_over = [this](CapturedTrace trace) { traces_.push_back(std::move(trace)); },
       .ask_native =
           [this](std::uint32_t request, std::int32_t first_batch, std::int32_t step_count) {
             if (request == 0) return;
             asked_of_process_ = {static_cast<std::int32_t>(request), first_batch, step_count};
           }},
      room_};
};

TEST_F(RankCaptureTest, SaysWhichStepItCanGiveThenGivesThoseOfAll) {
  Follow(Asked(5));
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].progress(), pb::CAPTURE_PROGRESS_READY);
  EXPECT_EQ(reports_[0].capture(), 5U);
  EXPECT_EQ(reports_[0].first_batch(), 8) << "the one that runs";
  for (int batch = 8; batch < 12; ++batch) Step(batch);
  Follow(Asked(5, 10, 3));
  Step(12);
  Follow(Asked(5, 10, 3));
  EXPECT_THAT(traces_, SizeIs(0)) << "other threads' rings were drained before it ended";
  Follow(Asked(5, 10, 3));
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_EQ(reports_[1].progress(), pb::CAPTURE_PROGRESS_RECORDED);
  EXPECT_EQ(reports_[1].first_batch(), 10);
  EXPECT_EQ(reports_[1].last_batch(), 12);
  EXPECT_EQ(reports_[1].step_count(), 3);
  EXPECT_EQ(reports_[1].span_count(), 6);
  EXPECT_EQ(reports_[1].name(), "capture-ep0-ba13-rank3.pftrace");
  ASSERT_THAT(traces_, SizeIs(1));
  EXPECT_EQ(traces_[0].name, reports_[1].name());
  const PerfettoTrace trace = PerfettoReading::Read(traces_[0].write());
  ASSERT_THAT(trace.Named("step"), SizeIs(3));
  ASSERT_THAT(trace.Named("forward"), SizeIs(3));
  EXPECT_EQ(trace.Named("step")[0].args.at("batch"), "10");
  EXPECT_EQ(trace.Named("step")[0].args.at("rank"), "3");
  // Asked no more.
  Follow(Asked(5, 10, 3));
  EXPECT_FALSE(capture_.is_busy());
  EXPECT_THAT(reports_, SizeIs(2));
  // And it may be that nobody can keep it.
  traces_[0].fail(absl::ResourceExhaustedError("disk full"));
  ASSERT_THAT(reports_, SizeIs(3));
  EXPECT_EQ(reports_[2].reason(), "NOT_WRITTEN");
  EXPECT_THAT(reports_[2].message(), HasSubstr("disk full"));
}

TEST_F(RankCaptureTest, ItsEpochIsTheOneThatWasRecordedBeforeItsSteps) {
  EpochLog epochs;
  epochs.Note(0, 1);
  epochs.Note(5, 2);
  epochs.Note(12, 3);
  facts_.epochs = &epochs;
  Follow(Asked(5));
  for (int batch = 8; batch < 13; ++batch) Step(batch);
  Follow(Asked(5, 9, 2));
  Follow(Asked(5, 9, 2));
  ASSERT_THAT(traces_, SizeIs(1));
  EXPECT_EQ(traces_[0].epoch, 2);
  EXPECT_EQ(traces_[0].name, "capture-ep2-ba11-rank3.pftrace");
  const PerfettoTrace trace = PerfettoReading::Read(traces_[0].write());
  ASSERT_THAT(trace.Named("step"), SizeIs(2));
  EXPECT_EQ(trace.Named("step")[0].args.at("epoch"), "2");
}

TEST_F(RankCaptureTest, ANativeProfilerSeesStepsThatHaveNotBegunAndIsToldOfApart) {
  pb::Capture asked = Asked(5);
  asked.set_native(true);
  facts_.native = {.is_offered = true, .typical_step_ns = 500'000'000};
  Follow(asked);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].first_batch(), 8 + 2) << "three quarters of a second later";
  asked.set_first_batch(11);
  asked.set_step_count(1);
  Follow(asked);
  EXPECT_EQ(asked_of_process_, (std::vector<std::int32_t>{5, 11, 1}));
  Step(11);
  Follow(asked);
  Follow(asked);
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_FALSE(reports_[1].native());
  EXPECT_TRUE(capture_.is_busy()) << "it is written still";
  facts_.native.answer = spool::PackCaptureAnswer(5, spool::kCaptureHandedOver, 1);
  Follow(std::nullopt);
  ASSERT_THAT(reports_, SizeIs(3));
  EXPECT_TRUE(reports_[2].native());
  EXPECT_EQ(reports_[2].name(), "capture-ep0-ba12-rank3.pt.trace.json.gz");
  EXPECT_FALSE(capture_.is_busy());
}

TEST_F(RankCaptureTest, WithoutANativeProfilerTheStepsComeAsEver) {
  pb::Capture asked = Asked(5);
  asked.set_native(true);
  Follow(asked);
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_EQ(reports_[0].first_batch(), 8);
  EXPECT_EQ(reports_[1].reason(), "NO_PROFILER");
  EXPECT_TRUE(reports_[1].native());
  EXPECT_TRUE(capture_.is_busy());
}

TEST_F(RankCaptureTest, SaysAtOnceWhereItCannot) {
  const struct {
    RankCapture::Facts facts;
    const char* reason;
  } rows[] = {{{.may_capture = false}, "ALL_USERS_AGENT"},
              {{.is_recording = false}, "NOT_RECORDING"},
              {{.is_live = false}, "WRITER_ENDED"}};
  std::uint64_t number = 0;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    facts_ = row.facts;
    reports_.clear();
    Follow(Asked(++number));
    ASSERT_THAT(reports_, SizeIs(1));
    EXPECT_EQ(reports_[0].reason(), row.reason);
    EXPECT_FALSE(capture_.is_busy());
  }
}

TEST_F(RankCaptureTest, AProcessThatEndsGivesWhatItHasOfTheSteps) {
  Follow(Asked(5));
  Step(8);
  Follow(Asked(5, 8, 100));
  facts_.is_live = false;
  Follow(Asked(5, 8, 100));
  ASSERT_THAT(traces_, SizeIs(1));
  EXPECT_EQ(reports_.back().step_count(), 1);
  facts_.is_live = true;
  Follow(Asked(6));
  Follow(Asked(6, 20, 5));
  facts_.is_live = false;
  Follow(Asked(6, 20, 5));
  EXPECT_EQ(reports_.back().reason(), "WRITER_ENDED");
  EXPECT_THAT(reports_.back().message(), HasSubstr("batches 20 to 24"));
}

TEST_F(RankCaptureTest, StepsThatDoNotComeInTimeAreToldWithTheLastThatDid) {
  Follow(Asked(5));
  Follow(Asked(5, 100, 5));
  Step(9);
  clock_.Advance(absl::Seconds(29));
  Follow(Asked(5, 100, 5));
  EXPECT_TRUE(capture_.is_busy());
  clock_.Advance(absl::Seconds(2));
  Follow(Asked(5, 100, 5));
  EXPECT_FALSE(capture_.is_busy());
  EXPECT_EQ(reports_.back().reason(), "NO_STEPS");
  EXPECT_THAT(reports_.back().message(),
              HasSubstr("batches 100 to 104: its last step was batch 9"));
}

TEST_F(RankCaptureTest, AnotherOneEndsThatOfPromisedStepsWithThoseThatAreOver) {
  Follow(Asked(5));
  Follow(Asked(5, 8, 10));
  Step(8);
  Step(9);
  // Of another one that nobody wants any more.
  auto cancelled = Asked(6);
  cancelled.set_cancelled(true);
  Follow(cancelled);
  EXPECT_TRUE(capture_.is_busy());
  Follow(Asked(7));
  ASSERT_THAT(traces_, SizeIs(1));
  EXPECT_EQ(traces_[0].first_batch, 8);
  EXPECT_EQ(traces_[0].last_batch, 9);
  EXPECT_THAT(PerfettoReading::Read(traces_[0].write()).Named("step"), SizeIs(2));
  EXPECT_EQ(reports_.back().capture(), 7U);
  EXPECT_EQ(reports_.back().progress(), pb::CAPTURE_PROGRESS_READY);
  // Without any there is no trace, and the newer one goes on.
  Follow(Asked(7, 50, 2));
  Follow(Asked(8));
  EXPECT_THAT(traces_, SizeIs(1));
  ASSERT_GE(reports_.size(), 2U);
  const pb::CaptureReport& ended = reports_[reports_.size() - 2];
  EXPECT_EQ(ended.capture(), 7U);
  EXPECT_EQ(ended.reason(), "NO_STEPS");
  EXPECT_THAT(ended.message(), HasSubstr("another capture"));
  EXPECT_EQ(reports_.back().capture(), 8U);
}

TEST_F(RankCaptureTest, WithoutRoomNoneBegins) {
  room_->Add(CaptureRoom::kBytesMax);
  Follow(Asked(5));
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].reason(), "AGENT_BUSY");
  EXPECT_THAT(reports_[0].message(), HasSubstr("64 MiB of captures of at most 64"));
  EXPECT_FALSE(capture_.is_busy());
  room_->Add(-CaptureRoom::kBytesMax);
  Follow(Asked(6));
  EXPECT_TRUE(capture_.is_busy());
}

TEST_F(RankCaptureTest, IsForgottenWithItsStreamUntilItsStepsAreKnown) {
  Follow(Asked(5));
  EXPECT_TRUE(capture_.is_busy());
  Follow(std::nullopt);
  EXPECT_FALSE(capture_.is_busy());
  Follow(Asked(6));
  auto cancelled = Asked(6);
  cancelled.set_cancelled(true);
  Follow(cancelled);
  EXPECT_FALSE(capture_.is_busy());
  Follow(Asked(7));
  Follow(Asked(8));  // another in its place
  EXPECT_EQ(reports_.back().capture(), 8U);
  Follow(Asked(8, 8, 2));
  Follow(std::nullopt);  // the master went: somebody wanted it
  EXPECT_TRUE(capture_.is_busy());
  Step(8);
  Step(9);
  Follow(std::nullopt);
  Follow(std::nullopt);
  EXPECT_THAT(traces_, SizeIs(1));
  EXPECT_FALSE(capture_.is_busy());
}

}  // namespace
}  // namespace stepwell::agent
