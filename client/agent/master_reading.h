// What a trace says of the master's clock: a look at this machine's two clocks beside what is known of their offset. A core
// but for the looks.
//
//   if (const auto reading = ReadMasterClock(anchor, offset, clock)) trace.AddMasterClock(*reading, trial);
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/trace/master_clock.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/clock_offset.h"

namespace stepwell::agent {

// Its error has in it what this thread was kept from between the two looks. Nothing while nobody measured the offset.
std::optional<MasterClock::Reading> ReadMasterClock(const ClockAnchor& anchor,
                                                    const ClockOffset& offset, const Clock& clock);

// How far the wall clock is ahead of what the anchor makes of this moment, in nanoseconds: it was set since. 0 below a
// millisecond, and below what this thread was kept from between the looks.
std::int64_t WallAheadNs(const ClockAnchor& anchor, const Clock& clock);

}  // namespace stepwell::agent
