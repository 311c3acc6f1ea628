// TracePages: the traces of a trial as a whole, and those that a command line names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/master_client.h"

namespace stepwell::cli {

// All pages as one.
[[nodiscard]] absl::StatusOr<v1::ListTracesResponse> ReadTraces(MasterClient& master,
                                                                const v1::TrialRef& trial);
// kInvalidArgument says what is allowed.
[[nodiscard]] absl::StatusOr<std::int32_t> ParseTraceNo(const std::string& text);
// Those that are named by number, which must be complete; none named: all that are.
[[nodiscard]] absl::StatusOr<std::vector<v1::Trace>> ChooseTraces(
    const v1::ListTracesResponse& list, const std::vector<std::int32_t>& trace_nos);

}  // namespace stepwell::cli
