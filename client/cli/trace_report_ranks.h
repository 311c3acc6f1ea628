// TraceReportRanks: the half of `stepwell trace report` that is of several traces: a row for each rank, and who waited for
// whom.
#pragma once

#include "client/cli/options.h"

namespace stepwell::cli {

// `options` are those of `trace report`: several FILEs, or --trial with several traces or none. Each is read as it
// comes, one after the other. Returns the exit code.
int ReportRanks(const CommandOptions& options, Streams streams);

}  // namespace stepwell::cli
