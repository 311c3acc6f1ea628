// Opens a writer: finds or creates its project, trial and attempt, numbers the writer and raises its
// generation, in one transaction that holds the trial's row. A function for PgIngestStore.
#pragma once

#include "absl/status/statusor.h"
#include "storage/ingest_store.h"
#include "storage/pg_connection.h"

namespace stepwell {

// As IngestStore::OpenWriter.
absl::StatusOr<OpenedWriter> OpenWriterInTransaction(PgConnection& connection,
                                                     const OpenWriterRequest& request);

}  // namespace stepwell
