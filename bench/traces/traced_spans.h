// TracedSpans: what a span costs the thread that measures itself where the agent writes spans as traces, and where it makes
// timings of them alone. Two processes train in turns, alike but for STEPWELL_TRACES; one agent serves both, with a real
// master. Functions.
#pragma once

#include <string>

namespace stepwell::bench {

// Prints `traces.span`. `bin` is the folder of the built programs. The calling thread, and what it starts, is on the second processor
// from then on: the first is for who trains.
void MeasureTracedSpans(const std::string& bin, bool is_quick);

}  // namespace stepwell::bench
