#include "client/agent/rank_capture.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/trace/master_clock.h"
#include "client/agent/master_reading.h"
#include "client/agent/trace_file.h"

namespace stepwell::agent {
namespace {

// Spans begin before the steps in which they end, not by more than that.
constexpr std::int64_t kEarlierNs = std::int64_t{3600} * 1'000'000'000;
constexpr std::int64_t kTimeoutMsMax = 3'600'000;
constexpr char kClosedBy[] = "the process ended, or its run was switched off or flushed";

}  // namespace

void RankCapture::Follow(const std::optional<pb::Capture>& asked, const Facts& facts) {
  const bool is_same = asked && asked->capture() == followed_;
  if (held_ != nullptr && !is_same && !steps_) {
    // The stream ended, or another is wanted, before anybody said which steps.
    held_.reset();
    native_.Drop();
  }
  if (asked && !is_same && asked->capture() != 0 && !asked->cancelled()) {
    // Its steps were promised, and its caller may be gone: what is there of them goes to the list.
    if (held_ != nullptr) Finish(held_->is_over() ? Why::kOver : Why::kSuperseded, facts);
    followed_ = asked->capture();
    Begin(*asked, facts);
  } else if (held_ != nullptr && is_same && asked->cancelled()) {
    held_.reset();
    native_.Drop();
  } else if (held_ != nullptr && is_same && !steps_ && asked->step_count() > 0) {
    steps_ = StepCapture::Steps{std::max(asked->first_batch(), 0),
                                std::min(asked->step_count(), StepCapture::kStepsMax)};
    held_->SetSteps(*steps_);
    native_.SetSteps(*steps_);
  }
  if (held_ != nullptr) GoOn(facts);
  if (auto report = native_.GoOn(facts.native, clock_.Monotonic())) {
    callbacks_.teller()(*std::move(report));
  }
}

void RankCapture::Begin(const pb::Capture& asked, const Facts& facts) {
  steps_.reset();
  was_over_ = false;
  if (!facts.may_capture) {
    return Fail("ALL_USERS_AGENT",
                "the rank is served by an agent of all users that could not make its folder for "
                "captures (its log says why); one of the user's own has one ('stepwell agent' "
                "beside the training)");
  }
  if (!facts.is_live)
    return Fail("WRITER_ENDED", absl::StrCat("its writer is closed: ", kClosedBy));
  if (!facts.is_recording) {
    return Fail("NOT_RECORDING",
                "the trial's recording is switched off ('stepwell admin profiling TRIAL on')");
  }
  if (room_->is_short()) {
    const CaptureRoom& room = room_->tightest();
    return Fail("AGENT_BUSY",
                absl::StrCat("its agent holds ", room.bytes() >> 20, " MiB of captures of at most ",
                             room.bytes_max() >> 20,
                             " that are not written yet; come again in a few seconds"));
  }
  const std::int64_t timeout_ms = std::clamp<std::int64_t>(asked.timeout_ms(), 1, kTimeoutMsMax);
  deadline_ = clock_.Monotonic() + absl::Milliseconds(timeout_ms);
  anchor_ = ClockAnchor::Take();
  held_ = std::make_unique<StepCapture>(StepCapture::Options{.room = room_});
  pb::CaptureReport report = Report(pb::CAPTURE_PROGRESS_READY);
  // The step that runs now is whole: what it recorded is in the rings until it ends. A profiler begins with a later one.
  const std::int32_t lead =
      asked.native() ? native_.Begin(followed_, deadline_, identity_.rank, facts.native) : 0;
  report.set_first_batch(static_cast<std::int32_t>(
      std::min(std::max<std::int64_t>(facts.last_batch, -1) + 1 + lead, std::int64_t{INT32_MAX})));
  callbacks_.teller()(std::move(report));
}

void RankCapture::GoOn(const Facts& facts) {
  const bool was_over = std::exchange(was_over_, held_->is_over());
  if (was_over || (was_over_ && !facts.is_live)) return Finish(Why::kOver, facts);
  if (!facts.is_live) return Finish(Why::kClosed, facts);
  if (clock_.Monotonic() >= deadline_) Finish(Why::kLate, facts);
}

// With what there is.
void RankCapture::Finish(Why why, const Facts& facts) {
  const StepCapture::Totals totals = steps_ ? held_->totals() : StepCapture::Totals();
  if (totals.step_count == 0) return FailWithoutSteps(why);
  CapturedTrace trace = TakeHeld(totals, facts);
  pb::CaptureReport report = Report(pb::CAPTURE_PROGRESS_RECORDED);
  report.set_first_batch(totals.first_batch);
  report.set_last_batch(totals.last_batch);
  report.set_step_count(totals.step_count);
  report.set_span_count(totals.span_count);
  report.set_left_out_count(totals.left_out_count);
  report.set_name(trace.name);
  log::Info("trace_captured", {{"writer", identity_.writer.ToText()},
                               {"name", trace.name},
                               {"spans", totals.span_count},
                               {"left_out", totals.left_out_count}});
  pb::CaptureReport failed = Report(pb::CAPTURE_PROGRESS_FAILED);
  trace.fail = [failed, tell = callbacks_.teller()](const absl::Status& unkept) {
    pb::CaptureReport told = failed;
    told.set_reason("NOT_WRITTEN");
    told.set_message(
        absl::StrCat("the agent could not keep it: ", unkept.message()).substr(0, 512));
    tell(std::move(told));
  };
  callbacks_.teller()(std::move(report));
  callbacks_.hand_over(std::move(trace));
}

void RankCapture::FailWithoutSteps(Why why) {
  const std::int32_t newest = held_->newest_batch();
  const std::string seen =
      newest < 0 ? "no step ended meanwhile" : absl::StrCat("its last step was batch ", newest);
  switch (why) {
    case Why::kClosed:
      return Fail("WRITER_ENDED", absl::StrCat("its writer was closed before ", StepsText(), " (",
                                               kClosedBy, "): ", seen));
    case Why::kSuperseded:
      return Fail("NO_STEPS",
                  absl::StrCat("another capture was asked for before ", StepsText(), ": ", seen));
    case Why::kOver:
    case Why::kLate:
      return Fail("NO_STEPS", absl::StrCat("nothing came of ", StepsText(), ": ", seen));
  }
}

CapturedTrace RankCapture::TakeHeld(const StepCapture::Totals& totals, const Facts& facts) {
  // An epoch is recorded as it begins, which was before anybody asked for its steps, as a rule.
  const auto epoch_at = [&](std::int32_t batch) {
    return facts.epochs == nullptr ? -1 : facts.epochs->EpochAt(batch);
  };
  CapturedTrace captured;
  captured.epoch =
      totals.epoch >= 0 ? static_cast<std::int32_t>(totals.epoch) : epoch_at(totals.last_batch);
  captured.first_batch = totals.first_batch;
  captured.last_batch = totals.last_batch;
  captured.name = absl::StrCat(
      "capture-",
      TraceFile::NameOf({.epoch = captured.epoch, .batch = totals.last_batch}, identity_.rank));
  const SpanTrace::Options options{.rank = identity_.rank,
                                   .pid = facts.pid,
                                   .base_time_ns = anchor_.realtime_us * 1000 - kEarlierNs,
                                   .epoch = epoch_at(totals.first_batch),
                                   .source = source_};
  const std::optional<MasterClock::Reading> master = ReadMasterClock(anchor_, offset_, clock_);
  const std::int64_t wall_ahead_ns = WallAheadNs(anchor_, clock_);
  const std::int64_t now_ns = anchor_.ToUnixNs(MonotonicNs());
  const std::string trial = absl::StrCat(identity_.project, "/", identity_.trial);
  captured.write = [held = std::shared_ptr<const StepCapture>(std::move(held_)), options, master,
                    wall_ahead_ns, now_ns, trial] {
    std::string bytes;
    SpanTrace trace(options, [&bytes](std::string_view packet) {
      bytes += packet;
      return absl::OkStatus();
    });
    held->WriteTo(trace);
    if (master) trace.AddMasterClock(*master, trial);
    if (wall_ahead_ns != 0) trace.AddWallClock(now_ns, wall_ahead_ns);
    trace.Flush().IgnoreError();  // what takes the packets cannot fail
    return bytes;
  };
  return captured;
}

std::string RankCapture::StepsText() const {
  if (!steps_) return "its steps: nobody told which";
  return absl::StrCat("batches ", steps_->first_batch, " to ", steps_->last_batch());
}

void RankCapture::Fail(std::string_view reason, std::string_view message) {
  held_.reset();
  pb::CaptureReport report = Report(pb::CAPTURE_PROGRESS_FAILED);
  report.set_reason(std::string(reason));
  report.set_message(std::string(message.substr(0, 512)));
  callbacks_.teller()(std::move(report));
}

pb::CaptureReport RankCapture::Report(pb::CaptureProgress progress) const {
  pb::CaptureReport report;
  report.set_capture(followed_);
  report.set_progress(progress);
  return report;
}

}  // namespace stepwell::agent
