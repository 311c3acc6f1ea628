// NativeCapture: what a native profiler of the training process is to see of the steps that a master asked for: asked of the
// process through its header, and what became of it. It stands beside StepCapture, within RankCapture. Pure; confined to the
// agent's loop.
//
//   lead = native.Begin(capture, deadline, rank, facts);   // 0: the process has none
//   native.SetSteps(steps);                                // as the master told them
//   if (auto report = native.GoOn(facts, now)) ...         // after each look at the header
//
// Invariant: for each Begin there is one report, unless Drop or another Begin comes before. Nothing is wanted of the process
// any more once it is given, or the time has passed; a profiler that runs by then ends with its step. What the process answers
// is untrusted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/agent/step_capture.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell::agent {

namespace pb = ::stepwell::v1;

class NativeCapture {
 public:
  // What holds of the process now.
  struct Facts {
    bool is_live = true;
    bool is_offered = false;  // it looks at each step's end
    // No: its file would lie where the process says, and the agent follows no path of this user.
    bool may_take = true;
    std::uint64_t answer = 0;           // as its header has it
    std::uint64_t typical_step_ns = 0;  // 0: no step is known
    std::uint64_t running_ns = 0;       // since its last step ended
  };
  // Into its header; request 0: nothing is wanted.
  using Ask =
      std::function<void(std::uint32_t request, std::int32_t first_batch, std::int32_t step_count)>;
  // From the answer until each process has heard which steps. With the second that a master waits for answers (TraceCapturing) and a
  // step of a quarter of one it is within the two seconds of a call that are promised.
  static constexpr absl::Duration kNoticeTime = absl::Milliseconds(750);
  // For a file that is written when the deadline passes: as long as a master waits for uploads.
  static constexpr absl::Duration kWritePatience = absl::Seconds(15);

  explicit NativeCapture(Ask ask) : ask_(std::move(ask)) {}

  // Steps from the one that runs to the first that it can give: 0 where it cannot, which the next GoOn reports.
  std::int32_t Begin(std::uint64_t capture, absl::Duration deadline, std::int32_t rank,
                     const Facts& facts);
  void SetSteps(const StepCapture::Steps& steps);
  // Nobody wants it any more.
  void Drop();
  std::optional<pb::CaptureReport> GoOn(const Facts& facts, absl::Duration now);
  bool is_busy() const { return capture_ != 0; }

 private:
  pb::CaptureReport End(pb::CaptureReport report);
  pb::CaptureReport Failed(std::string_view reason, std::string_view message);
  pb::CaptureReport HandedOver(std::int32_t step_count);

  const Ask ask_;
  std::uint64_t capture_ = 0;  // 0: none
  std::uint32_t request_ = 0;
  std::int32_t rank_ = 0;
  bool is_offered_ = false;
  bool may_take_ = true;
  absl::Duration deadline_;
  std::optional<StepCapture::Steps> steps_;
};

}  // namespace stepwell::agent
