// Rows of traces: what PgTraceStore and the sweeper of traces both do with them. Functions, on the caller's
// connection.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/pg_connection.h"
#include "storage/pg_result.h"
#include "storage/trace_store.h"

namespace stepwell {

// Of STEPWELL_TRACE_COLUMNS.
TraceRecord TraceAt(const PgResult& rows, int row);

// Inside a transaction that holds the trial's line of the ledger: what is kept of the trace is given up, and
// the ledger moved. Removed with a reason, or deleted without one.
absl::Status GiveUpTrace(PgConnection& connection, const TraceRecord& trace,
                         const std::string& reason);

// A transaction of its own: some parts of a trace that was given up, and its row where it was deleted and
// none is left. True: nothing is left.
absl::StatusOr<bool> ClearTraceSlice(PgConnection& connection, std::int64_t owner_epoch,
                                     TrialId trial_id, std::int32_t trace_no);

}  // namespace stepwell
