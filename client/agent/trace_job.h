// TraceJob: a trace's file that is to go to the master of a writer: what a note in the outbox (trace_outbox.h) says. A
// value. Recorders write such notes (stepwell_upload_trace), and the agent for what it records itself.
//
//   {"path": "/data/traces/ep0-ba8-rank3.pftrace", "first_batch": 0, "last_batch": 7, "writer": {writer.json}}
//
//   STEPWELL_ASSIGN_OR_RETURN(const TraceJob job, ParseTraceJob(bytes));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

struct TraceJob {
  WriterIdentity writer;  // whose it is: its master, trial and rank
  std::string path;       // absolute
  // -1: not known.
  std::int32_t epoch = -1;
  std::int32_t first_batch = -1;
  std::int32_t last_batch = -1;
  bool removes_file = false;  // once it is stored
};

// Checks every field; the text comes from another process. Errors name the field.
absl::StatusOr<TraceJob> ParseTraceJob(std::string_view json);
std::string ToTraceJobJson(const TraceJob& job);

}  // namespace stepwell::agent
