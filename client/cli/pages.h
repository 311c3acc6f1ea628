// Pages: lists of a master that come page by page, as a whole. Each call ends within its deadline.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/master_client.h"

namespace stepwell::cli {

// A limit for those who want all.
inline constexpr std::int64_t kNoLimit = INT64_MAX;

// At most `limit`, newest first. REQUIRES: limit > 0.
[[nodiscard]] absl::StatusOr<std::vector<v1::Trial>> ReadTrials(MasterClient& master,
                                                                v1::ListTrialsRequest request,
                                                                std::int64_t limit);
// At most `limit`, by number. REQUIRES: limit > 0.
[[nodiscard]] absl::StatusOr<std::vector<v1::Series>> ReadSeries(MasterClient& master,
                                                                 v1::ListSeriesRequest request,
                                                                 std::int64_t limit);

}  // namespace stepwell::cli
