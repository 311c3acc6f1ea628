// Failpoints: named places where a test can make the process die, hang, fail or wait.
//
//   STEPWELL_FAILPOINT("after_commit_before_ack");
//   STEPWELL_RETURN_IF_ERROR(failpoint::Check("fold_before_commit"));
//
// Armed by the environment, read once: STEPWELL_FAILPOINTS="name=action[*count][@skip];...".
// Actions: `exit` (SIGKILL to ourselves), `error` (Check returns kUnavailable), `sleep:MS`, `hang`,
// `while:PATH` (waits while the file is there). With *count the action happens that many times, with @skip the first `skip` passes are
// let through; `%N` makes it happen on a pass with probability 1/N. Each hit prints
// "failpoint NAME ACTION" to stderr. Unarmed: one relaxed load and a branch.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace stepwell::failpoint {

// True when STEPWELL_FAILPOINTS named anything at start.
bool AnyArmed();
// Passes the point: acts if armed. Returns an error only for the action `error`.
absl::Status Pass(absl::string_view name);

inline absl::Status Check(absl::string_view name) {
#ifdef STEPWELL_FAILPOINTS
  if (AnyArmed()) [[unlikely]]
    return Pass(name);
#else
  (void)name;
#endif
  return absl::OkStatus();
}

}  // namespace stepwell::failpoint

#define STEPWELL_FAILPOINT(name) ::stepwell::failpoint::Check(name).IgnoreError()
