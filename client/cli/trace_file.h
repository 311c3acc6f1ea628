// TraceFile: a Chrome trace in a file, gzip or not, read piece by piece; and what its name tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/trace/trace_splitter.h"

namespace stepwell::cli {

// What is missing at the end of a file is no failure: the form says that it was cut. A failure names the file;
// kNotFound: it cannot be opened.
[[nodiscard]] absl::StatusOr<TraceForm> ReadTraceFile(const std::string& path,
                                                      TraceSplitter::Takers takers);

// 3 of "ep0-ba7-rank3.json" and "rank3.7.pt.trace.json.gz", in the last part of the path.
std::optional<std::int32_t> RankOfFileName(const std::string& path);
// "ep0-ba7" of the first of them; empty of names without.
std::string CycleOfFileName(const std::string& path);

}  // namespace stepwell::cli
