// How long a trial's exit may wait for the ack of what it recorded.
#pragma once

#include <cstdint>
#include <string>

#include "client/recorder/src/environment.h"

namespace stepwell::recorder {

// STEPWELL_EXIT_WAIT, in seconds: 0 ... 3600, default 5. What is no number is as if it were not set.
std::int64_t ReadExitWaitMs(const Environment& environment);
// What is wrong with it, and what is taken instead; empty = nothing.
std::string ExitWaitRemark(const Environment& environment);

}  // namespace stepwell::recorder
