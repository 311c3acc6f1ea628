// RankTrace: what a training process wanted traced (writer.json's "tracing"), recorded: its spans, in a file of the
// directory that it named. Stands between RankWriter, which drains its rings, and SpanTrace and TraceFile. What fails is
// logged once and costs the trace alone. Confined to the agent's loop; blocks as the disk does.
//
//   RankTrace trace(identity);
//   samples.SetTrace(&trace.spans());
//   trace.Flush();       // after each drain
//   trace.Finish();      // the process is over, and all of it was drained
#pragma once

#include <memory>

#include "client/agent/span_trace.h"
#include "client/agent/trace_file.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

class RankTrace {
 public:
  // REQUIRES: identity.tracing.directory is not empty.
  explicit RankTrace(const WriterIdentity& identity);

  SpanTrace& spans() { return spans_; }
  void Flush();
  // Once: the file gets the name of its cycle.
  void Finish();

 private:
  [[nodiscard]] absl::Status Append(std::string_view packet);
  void Complain(const absl::Status& status);

  const TraceFile::Options options_;
  SpanTrace spans_;
  std::unique_ptr<TraceFile> file_;  // made with the first spans
  bool has_failed_ = false;
};

}  // namespace stepwell::agent
