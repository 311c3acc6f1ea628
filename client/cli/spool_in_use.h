// SpoolInUse: whether others still work with a spool directory that an upload is to send, and what to
// do about it. An agent that a trial started leaves by itself once all that is left was recorded
// offline: it is waited for.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/agent/spool_survey.h"

namespace stepwell::cli {

// `survey`, or a later one where an agent that has nothing to send was about to leave. `place` is how
// the directory is opened. Waits at most `patience`.
absl::StatusOr<agent::SpoolSurvey> AwaitLeavingAgent(agent::SpoolSurvey survey,
                                                     const std::string& place,
                                                     absl::Duration patience);

// Why nothing is begun; empty = it may.
std::string ReasonToRefuse(const agent::SpoolSurvey& survey);

}  // namespace stepwell::cli
