// A trace as Kineto writes it, made piece by piece as it is read: no disk is in what is measured.
#pragma once

#include "base/trace/trace_reading.h"

namespace stepwell::bench {

// About 270 bytes an event.
TraceSource Generated(int rank, int event_count);

}  // namespace stepwell::bench
