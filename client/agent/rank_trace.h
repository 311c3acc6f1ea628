// RankTrace: what a training process wanted traced (writer.json's "tracing"), recorded: its spans, in a file of the
// directory that it named. Stands between RankWriter, which drains its rings, and SpanTrace and TraceFile. What fails is
// logged once and costs the trace alone. Confined to the agent's loop; blocks as the disk does.
//
//   RankTrace trace(identity, leave_trace);
//   samples.SetTrace(&trace.spans());
//   trace.NoteClock(sender.clock_offset(), clock, samples.trace_anchor(), When::kIfDue);
//   trace.Flush();       // after each drain
//   trace.Finish();      // the process is over, and all of it was drained
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/clock_offset.h"
#include "client/agent/span_trace.h"
#include "client/agent/trace_file.h"
#include "client/agent/trace_job.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

class RankTrace {
 public:
  // Called with a whole file that is to be uploaded.
  using LeaveTrace = std::function<void(const TraceJob& job)>;

  // REQUIRES: identity.tracing.directory is not empty.
  RankTrace(const WriterIdentity& identity, LeaveTrace leave);

  SpanTrace& spans() { return spans_; }
  // Writes down how far the master's clock is, each ten seconds, where that is known: a merge goes by it. `anchor` is what
  // the spans' times go by.
  enum class When { kIfDue, kNow };
  void NoteClock(const ClockOffset& offset, const Clock& clock, const ClockAnchor& anchor,
                 When when);
  void Flush();
  // Once: the file gets the name of its cycle.
  void Finish();

 private:
  [[nodiscard]] absl::Status Append(std::string_view packet);
  void Complain(const absl::Status& status);

  const WriterIdentity identity_;
  const LeaveTrace leave_;
  const TraceFile::Options options_;
  SpanTrace spans_;
  std::unique_ptr<TraceFile> file_;  // made with the first spans
  absl::Duration clock_due_ = -absl::InfiniteDuration();
  bool has_failed_ = false;
};

}  // namespace stepwell::agent
