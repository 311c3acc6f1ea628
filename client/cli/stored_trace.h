// StoredTrace: the bytes of a trace that a master keeps, as they come: each time from the first on, never whole in memory.
#pragma once

#include <string>

#include "base/trace/trace_reading.h"
#include "client/cli/master_client.h"

namespace stepwell::cli {

// "trace 3 (rank0.json)", for messages.
std::string StoredTraceLabel(const v1::Trace& trace);
// `master` outlives it. kDataLoss at the end: these were not the bytes that were uploaded.
[[nodiscard]] TraceSource SourceOfStored(MasterClient& master, v1::TrialRef trial, v1::Trace trace);

}  // namespace stepwell::cli
