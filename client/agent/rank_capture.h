// RankCapture: what a master wants traced of one training process (the directive Capture), followed: from its first word,
// through the steps, to a whole trace that is handed over. It stands between RankWriter, which drains the rings, and
// StepCapture, which holds what they had. Touches no file: it hands bytes over. Confined to the agent's loop.
//
//   capture.Follow(status.capture, facts);                       // after each drain
//   samples.SetCapture(capture.sink(), capture.anchor());
//
// Invariant: for each capture that it was asked for there is an answer, READY and then RECORDED, or FAILED with a reason, as
// long as the stream on which it was asked stands; without one, and past its time, nothing is held for it. What is held is
// bounded (step_capture.h). It survives a process that ends between or within the steps (what it had of them is a trace),
// steps that never come (the time passes), and a master that dies or asks for something else meanwhile: it is forgotten, but
// for one whose steps are known: its trace is wanted and comes to the list, and where another capture is asked for before they are
// over it has those that are. All captures of a root share a room; where that is short none begins (AGENT_BUSY).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/trace/master_clock.h"
#include "client/agent/capture_room.h"
#include "client/agent/captured_trace.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/clock_offset.h"
#include "client/agent/epoch_log.h"
#include "client/agent/native_capture.h"
#include "client/agent/span_trace.h"
#include "client/agent/step_capture.h"
#include "client/agent/writer_identity.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell::agent {

namespace pb = ::stepwell::v1;

class RankCapture {
 public:
  // What holds of the process, all of whose rings were drained just before.
  struct Facts {
    bool may_capture = true;   // the agent has a place for what it captures
    bool is_recording = true;  // no directive keeps it from it
    std::int64_t pid = 0;      // as it says itself; 0: not known
    bool is_live = true;
    std::int32_t last_batch = -1;  // of its last step
    NativeCapture::Facts native = {};
    const EpochLog* epochs = nullptr;  // null: none was recorded
  };
  // Says it to the writer's master; on any thread.
  using Tell = std::function<void(pb::CaptureReport)>;
  struct Callbacks {
    std::function<Tell()> teller;  // the master's of now
    std::function<void(CapturedTrace)> hand_over;
    NativeCapture::Ask ask_native = [](std::uint32_t, std::int32_t, std::int32_t) {};
  };

  // The references outlive it.
  RankCapture(const WriterIdentity& identity, const Clock& clock, const ClockOffset& offset,
              Callbacks callbacks,
              std::shared_ptr<CaptureRoom> room = std::make_shared<CaptureRoom>(),
              SpanTrace::Source source = {})
      : identity_(identity),
        clock_(clock),
        offset_(offset),
        callbacks_(std::move(callbacks)),
        native_(callbacks_.ask_native),
        room_(std::move(room)),
        source_(std::move(source)) {}

  // `asked`: the newest of the stream; none: nothing, or the stream has ended.
  void Follow(const std::optional<pb::Capture>& asked, const Facts& facts);
  // Something is under way: the process should be visited at each interval.
  bool is_busy() const { return held_ != nullptr || native_.is_busy(); }

  // Where what is recorded goes; null: nowhere. What times go by while it does.
  StepCapture* sink() const { return held_.get(); }
  const ClockAnchor& anchor() const { return anchor_; }

 private:
  enum class Why { kOver, kClosed, kLate, kSuperseded };
  void Begin(const pb::Capture& asked, const Facts& facts);
  void GoOn(const Facts& facts);
  void Finish(Why why, const Facts& facts);
  void FailWithoutSteps(Why why);
  void Fail(std::string_view reason, std::string_view message);
  pb::CaptureReport Report(pb::CaptureProgress progress) const;
  CapturedTrace TakeHeld(const StepCapture::Totals& totals, const Facts& facts);
  std::string StepsText() const;

  const WriterIdentity& identity_;
  const Clock& clock_;
  const ClockOffset& offset_;
  const Callbacks callbacks_;
  NativeCapture native_;
  const std::shared_ptr<CaptureRoom> room_;
  const SpanTrace::Source source_;

  std::uint64_t followed_ = 0;  // the newest capture that was answered
  std::unique_ptr<StepCapture> held_;
  std::optional<StepCapture::Steps> steps_;  // of held_
  ClockAnchor anchor_;
  absl::Duration deadline_ = absl::InfiniteDuration();
  // All steps were seen to be over: what ended before on other threads has come by the visit after that.
  bool was_over_ = false;
};

}  // namespace stepwell::agent
