// Stores known holes, coalesced by GapLedger, inside the caller's transaction. The caller holds the
// rows of the writers concerned, so nobody else extends the same gap.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "storage/model.h"
#include "storage/pg_connection.h"

namespace stepwell {

struct TrialGap {
  TrialId trial_id{};
  Gap gap;
};

// Four statements, none when `gaps` is empty.
absl::Status WriteGaps(PgConnection& connection, const std::vector<TrialGap>& gaps);

}  // namespace stepwell
