// TraceFile: a trace in a file, handed on piece by piece.
#pragma once

#include <string>

#include "base/trace/trace_reading.h"

namespace stepwell::traces {

// A failure names the file; kNotFound: it cannot be opened or read.
[[nodiscard]] TraceSource SourceOfFile(std::string path);

// With the file's name in front, once.
[[nodiscard]] absl::Status Named(const absl::Status& status, const std::string& path);

// As ReadTrace; a failure names the file.
[[nodiscard]] absl::StatusOr<TraceForm> ReadTraceFile(const std::string& path,
                                                      TraceSplitter::Takers takers);

}  // namespace stepwell::traces
