// The dictionary of series: numbers for definitions, new ones where needed. A function for
// PgIngestStore.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/model.h"
#include "storage/pg_connection.h"

namespace stepwell {

// As IngestStore::FindOrCreateSeries, in one transaction at most. Known series cost one statement and no lock. `created`
// has the places of definitions whose series are new, also where the call fails behind them.
absl::StatusOr<std::vector<SeriesNo>> FindOrCreateSeriesRows(
    PgConnection& connection, TrialId trial_id, absl::Span<const SeriesDefinition> definitions,
    int series_max, std::vector<std::size_t>& created);

}  // namespace stepwell
