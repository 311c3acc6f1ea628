// A trace as Kineto writes it, made piece by piece as it is read: no disk is in what is measured.
#pragma once

#include "base/trace/trace_reading.h"

namespace stepwell::bench {

// About 270 bytes an event.
TraceSource Generated(int rank, int event_count);

// A training on a GPU, as Kineto orders it: all operators, each with one inside it, then all calls that launched, then all
// kernels, each of these two with its own end of their flow behind it; so nothing is in order of time. Six events a launch,
// about 160 bytes each.
TraceSource GeneratedProfile(int rank, int launch_count);

}  // namespace stepwell::bench
