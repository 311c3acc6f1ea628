// Rows of series that hold more samples than they may: the oldest ones, as long as the newer rows alone
// reach the bound. Functions for previews and sweeps, on the caller's connection.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/leaf_sweep.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_slices.h"

namespace stepwell {

struct ExcessRow {
  RowKey key = {};
  std::int64_t sample_count = 0;
  std::int64_t last_time_us = 0;
};

using ExcessRows = std::map<LeafKey, std::vector<ExcessRow>>;

// Calls `each` with such rows of metrics, some series at a time, the last of them being `last`, until it
// answers false; where they have none, too. Samples in recent
// count as newest. Reads the heads of all rows of these series; O(rows), without decoding.
absl::Status ForEachExcess(
    PgConnection& connection, TrialId trial_id, const std::vector<std::int32_t>& series_nos,
    std::int64_t samples_max,
    const std::function<absl::StatusOr<bool>(const ExcessRows& rows, std::int32_t last)>& each);

}  // namespace stepwell
