// DetachedProcess: how an agent that a recorder started becomes a process that nobody waits for and
// that costs the training little.
//
//   STEPWELL_RETURN_IF_ERROR(DetachProcess());   // first of all, before any thread
#pragma once

#include "absl/status/status.h"

namespace stepwell::agent {

// Goes on in a child; the caller's own process ends with 0 here, so that the trial never has the
// agent among its children. The child has no standard streams and no other descriptor, runs on all
// processors, at nice 10, blocks no signal, stands in the root directory.
// REQUIRES: one thread.
absl::Status DetachProcess();

}  // namespace stepwell::agent
