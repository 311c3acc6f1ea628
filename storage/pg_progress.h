// Where writers stand, read from the table of writers. Functions for PgWriter, PgFolder and
// PgIngestStore.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/ingest_store.h"
#include "storage/pg_connection.h"

namespace stepwell {

using ProgressMap = std::map<std::pair<TrialId, WriterNo>, WriterProgress>;

// Rows of a statement whose columns are those of STEPWELL_WRITER_PROGRESS.
std::vector<WriterProgress> ProgressRows(const PgResult& result);

// `statement` is kReadWriterPairs or kReadWriterPairsSettled; absent writers are absent.
absl::StatusOr<ProgressMap> ReadProgressOf(
    PgConnection& connection, const char* statement,
    const std::vector<std::pair<TrialId, WriterNo>>& writers);

}  // namespace stepwell
