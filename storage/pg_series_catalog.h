// The dictionary of series: numbers for definitions, new ones where needed. A function for
// PgIngestStore.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/model.h"
#include "storage/pg_connection.h"

namespace stepwell {

// As IngestStore::FindOrCreateSeries. Known series cost one statement and no lock.
absl::StatusOr<std::vector<SeriesNo>> FindOrCreateSeriesRows(
    PgConnection& connection, TrialId trial_id, absl::Span<const SeriesDefinition> definitions,
    int series_max, std::int64_t* created);

}  // namespace stepwell
