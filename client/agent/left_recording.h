// LeftRecording: finishes a trace that an agent left as it was, because it ended or was killed while it recorded: it gets the
// name that its own events tell. Blocks as the disk does, and reads all of it: for a thread of its own. A function.
//
//   STEPWELL_ASSIGN_OR_RETURN(const TraceJob whole, FinishLeftRecording(note, outbox, [&] { return !is_stopping; }));
//
// A note names whatever its writer likes: taken is what has the name of an unfinished recording of that rank, what the outbox
// would send, what nobody writes, and what says of itself that it is that writer's.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "client/agent/trace_job.h"
#include "client/agent/trace_outbox.h"

namespace stepwell::agent {

// `note` with the path that it has now, its epoch and its batches; where it is to be uploaded the outbox has a note of that, from
// before it lost its old name on. kUnavailable: it is still written; kNotFound: it is not there, or nothing was written to it;
// kInvalidArgument: it is no such file; kCancelled: `may_go_on` said no; kAborted: its directory is not there;
// kFailedPrecondition: it cannot be read or finished for now.
absl::StatusOr<TraceJob> FinishLeftRecording(const TraceJob& note, const TraceOutbox& outbox,
                                             const std::function<bool()>& may_go_on);

}  // namespace stepwell::agent
