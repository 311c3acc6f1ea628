#include "storage/read_patience.h"

#include "base/status_macros.h"

namespace stepwell {

absl::StatusOr<ReadPatience::Looked> ReadPatience::Ask(SteadyTime now) {
  if (ended_.ok() && now >= deadline_) {
    ended_ = absl::DeadlineExceededError("read: no time is left");
  }
  STEPWELL_RETURN_IF_ERROR(ended_);
  if (now < next_look_) return Looked::kNo;
  next_look_ = now + kLookEach;
  if (cancelled_ && cancelled_()) {
    ended_ = absl::CancelledError("read: nobody waits for its answer any more");
  }
  STEPWELL_RETURN_IF_ERROR(ended_);
  return Looked::kYes;
}

}  // namespace stepwell
