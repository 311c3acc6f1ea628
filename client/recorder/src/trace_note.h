// TraceNote: a trace's file that is to be uploaded, noted beside the writers of a spool's root, where an agent finds it
// (client/agent/trace_job.h has what stands in it). It goes on waiting there when this process is gone.
#pragma once

#include <cstdint>
#include <string>

namespace stepwell::recorder {

struct TraceNote {
  std::string path;  // absolute
  // -1: not known.
  std::int32_t epoch = -1;
  std::int32_t first_batch = -1;
  std::int32_t last_batch = -1;
  bool removes_file = false;  // once it is stored
};

// `writer_path` is the writer's directory, as SpoolWriter has it. False where it could not be written. Blocks on the
// file system.
bool LeaveTraceNote(const std::string& writer_path, const TraceNote& note);

}  // namespace stepwell::recorder
