#include "client/agent/native_capture.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

// Where nothing is known of them.
constexpr std::uint64_t kStepNs = 50'000'000;
constexpr std::uint64_t kStepNsMin = 1'000;

struct Trouble {
  std::string_view reason;
  std::string_view message;
};

Trouble TroubleOf(std::uint32_t outcome) {
  switch (outcome) {
    case spool::kCaptureNoProfiler:
      return {"NO_PROFILER",
              "its program has not imported torch, whose profiler is the one that can be started, "
              "or has one whose profiler is not known"};
    case spool::kCaptureBusy:
      return {"PROFILER_BUSY",
              "another profiler of torch's runs in its process, or began within the steps"};
    case spool::kCaptureLate:
      return {"TOO_LATE",
              "the first of the steps had begun when its process heard of them; come again"};
    case spool::kCaptureFailed:
      return {"PROFILER_FAILED",
              "torch's profiler could not be started or ended; the training's stderr says why"};
    case spool::kCaptureNotWritten:
      return {"NOT_WRITTEN",
              "what torch's profiler saw could not be written or handed over; the training's "
              "stderr says why"};
    case spool::kCaptureNoSteps:
      return {"NO_STEPS",
              "its loop over the batches, or its run, ended before one of the steps was over"};
    default:
      return {"PROFILER_FAILED", "its process answered what this agent does not know"};
  }
}

}  // namespace

std::int32_t NativeCapture::Begin(std::uint64_t capture, absl::Duration deadline, std::int32_t rank,
                                  const Facts& facts) {
  Drop();
  capture_ = capture;
  // Never 0, and another one than that before.
  request_ = static_cast<std::uint32_t>(capture) == 0 ? 1 : static_cast<std::uint32_t>(capture);
  rank_ = rank;
  deadline_ = deadline;
  may_take_ = facts.may_take;
  is_offered_ = facts.is_offered && may_take_;
  if (!is_offered_) return 0;
  const std::uint64_t step_ns =
      facts.typical_step_ns == 0 ? kStepNs : std::max(facts.typical_step_ns, kStepNsMin);
  const std::uint64_t left_ns = step_ns - std::min(step_ns, facts.running_ns);
  const auto notice_ns = static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(kNoticeTime));
  const std::uint64_t more_ns = notice_ns - std::min(notice_ns, left_ns);
  // The one that runs, and as many as pass until all have heard.
  return static_cast<std::int32_t>(1 + (more_ns + step_ns - 1) / step_ns);
}

void NativeCapture::SetSteps(const StepCapture::Steps& steps) {
  if (!is_busy() || !is_offered_ || steps_) return;
  steps_ = steps;
  ask_(request_, steps.first_batch, steps.step_count);
}

void NativeCapture::Drop() {
  if (steps_) ask_(0, 0, 0);
  capture_ = 0;
  steps_.reset();
}

std::optional<pb::CaptureReport> NativeCapture::GoOn(const Facts& facts, absl::Duration now) {
  if (!is_busy()) return std::nullopt;
  if (!may_take_) {
    return Failed(
        "ALL_USERS_AGENT",
        "its process would hand over a file by its path, and an agent of all users follows "
        "none; one of the user's own does ('stepwell agent' beside the training)");
  }
  if (!is_offered_) {
    return Failed("NO_PROFILER",
                  "nothing in its process looks for captures: it records without the Python "
                  "package, or with one from before them");
  }
  const auto request = static_cast<std::uint32_t>(facts.answer >> 32);
  const auto outcome = static_cast<std::uint32_t>(facts.answer >> 24 & 0xff);
  const bool is_answered = steps_ && request == request_;
  if (is_answered && outcome == spool::kCaptureHandedOver) {
    return HandedOver(static_cast<std::int32_t>(facts.answer & 0xffffff));
  }
  const bool is_running = is_answered && outcome == spool::kCaptureRunning;
  if (is_answered && !is_running) {
    const Trouble trouble = TroubleOf(outcome);
    return Failed(trouble.reason, trouble.message);
  }
  if (!facts.is_live) {
    return Failed("WRITER_ENDED",
                  "the process ended, or its run was switched off or flushed, before its profile "
                  "was handed over");
  }
  if (now < (is_running ? deadline_ + kWritePatience : deadline_)) return std::nullopt;
  return is_running ? Failed("PROFILE_MISSING",
                             "it records, or is written still; 'stepwell trace list' has it once "
                             "it is uploaded")
                    : Failed("NO_STEPS", "its steps did not come in time");
}

pb::CaptureReport NativeCapture::HandedOver(std::int32_t step_count) {
  pb::CaptureReport report;
  report.set_progress(pb::CAPTURE_PROGRESS_RECORDED);
  const std::int32_t over = std::min(step_count, steps_->step_count);
  report.set_first_batch(steps_->first_batch);
  report.set_last_batch(static_cast<std::int32_t>(
      std::min<std::int64_t>(std::int64_t{steps_->first_batch} + over - 1, INT32_MAX)));
  report.set_step_count(over);
  // As the package calls it, and packed.
  report.set_name(absl::StrCat("capture-ep0-ba", std::int64_t{report.last_batch()} + 1, "-rank",
                               rank_, ".pt.trace.json.gz"));
  return End(std::move(report));
}

pb::CaptureReport NativeCapture::Failed(std::string_view reason, std::string_view message) {
  pb::CaptureReport report;
  report.set_progress(pb::CAPTURE_PROGRESS_FAILED);
  report.set_reason(std::string(reason));
  report.set_message(std::string(message));
  return End(std::move(report));
}

pb::CaptureReport NativeCapture::End(pb::CaptureReport report) {
  report.set_capture(capture_);
  report.set_native(true);
  Drop();
  return report;
}

}  // namespace stepwell::agent
