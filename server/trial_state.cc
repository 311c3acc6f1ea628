#include "server/trial_state.h"

#include "base/check.h"
#include "server/limits.h"

namespace stepwell {

TrialState DeriveTrialState(absl::Span<const WriterFact> writers, SteadyTime now) {
  STEPWELL_CHECK(!writers.empty());
  bool any_silent = false;
  bool any_died = false;
  for (const WriterFact& writer : writers) {
    switch (writer.state) {
      case WriterState::kOpen:
        if (now - writer.heard <= absl::Seconds(kHeartbeatSecondsMax)) return TrialState::kRunning;
        any_silent = true;
        break;
      case WriterState::kDied:
        any_died = true;
        break;
      case WriterState::kClosed:
        break;
    }
  }
  if (any_silent) return TrialState::kLost;
  return any_died ? TrialState::kFailed : TrialState::kCompleted;
}

}  // namespace stepwell
