// Where writers stand, read from the table of writers. Functions for PgWriter, PgFolder and
// PgIngestStore.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/ingest_store.h"
#include "storage/pg_connection.h"
#include "storage/pg_link.h"

namespace stepwell {

using ProgressMap = std::map<std::pair<TrialId, WriterNo>, WriterProgress>;

// Rows of a statement whose columns are those of STEPWELL_WRITER_PROGRESS.
std::vector<WriterProgress> ProgressRows(const PgResult& result);

using WriterKeys = std::vector<std::pair<TrialId, WriterNo>>;

// What this statement sees; absent writers are absent.
absl::StatusOr<ProgressMap> ReadProgressOf(PgConnection& connection, const WriterKeys& writers);

// The last word: waits for transactions that hold these writers' rows, such as one whose COMMIT is
// in doubt. A transaction of its own that ends in a rollback, so that it leaves nothing to be
// flushed or replicated.
absl::StatusOr<ProgressMap> ReadSettledProgress(PgConnection& connection,
                                                const WriterKeys& writers);

// The same after a COMMIT in doubt: on fresh connections, until one answers or `timeout` is over.
// An error is CommitUnknown.
absl::StatusOr<ProgressMap> ReadBackProgress(PgLink& link, const WriterKeys& writers,
                                             absl::Duration timeout);

}  // namespace stepwell
