// Opens writers of one trial: finds or creates its project, trial and attempts, numbers the writers and raises their
// generations, in one transaction that holds the trial's row. A function for PgIngestStore.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/ingest_store.h"
#include "storage/pg_connection.h"

namespace stepwell {

// As IngestStore::OpenWriter, for each. A status of its own has one for which the trial has no room; all else that
// fails fails for all of them, and nothing was done. However many they are, it takes as many statements as for two.
// REQUIRES: CheckOpen lets each through; they are of one trial, filter and epoch, and of different writers.
absl::StatusOr<std::vector<absl::StatusOr<OpenedWriter>>> OpenWritersInTransaction(
    PgConnection& connection, std::span<const OpenWriterRequest* const> requests);

}  // namespace stepwell
