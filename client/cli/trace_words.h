// TraceWords: formats and states of traces in words, and where a trace lies among files. Functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "stepwell/v1/trace.pb.h"

namespace stepwell::cli {

// kInvalidArgument says what is allowed.
[[nodiscard]] absl::StatusOr<v1::TraceFormat> ParseTraceFormat(const std::string& text);
// What a merge is written as: JSON or Perfetto's form, where neither is asked for by the name of its file (.pftrace,
// .perfetto-trace, also with .gz behind).
[[nodiscard]] absl::StatusOr<v1::TraceFormat> ParseMergeFormat(const std::string& text,
                                                               const std::string& output);
std::string TraceFormatText(v1::TraceFormat format);
// "complete", "uploading, 40 %", "refused: trace_bytes".
std::string TraceStateText(const v1::Trace& trace);
// "ep0-ba7", "ba7"; empty where nothing is known.
std::string TraceCycleText(const v1::TraceHeader& header);

// How far inputs of a merge may lie from their places, of each its rank and its error in nanoseconds (none: unknown). Empty:
// they share one clock.
std::string ClocksText(
    const std::vector<std::pair<std::int32_t, std::optional<std::int64_t>>>& errors);

// Behind a failure of a file: what whoever meant a trial is to write; empty where it is there, or looks like a file.
std::string TrialHint(const std::string& file);

// Below the directory that `tensorboard --logdir` is given: one run for each trial, as its profile plugin
// (plugins/profile/CYCLE/HOST.xplane.pb, HOST.trace.json.gz; SESSION/HOST as they were, where the trace's name has them) and
// PyTorch's (WORKER.SPAN.pt.trace.json.gz) look for them. None of `taken`, where it is added.
std::string TensorboardPath(const std::string& trial, const v1::Trace& trace,
                            std::set<std::string>& taken);

}  // namespace stepwell::cli
