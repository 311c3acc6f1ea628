// The check that every transaction of an owner begins with. For PgFolder and PgMerger; a commit
// has its own form of it, which tells trials that are gone from trials of another owner.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "storage/pg_connection.h"

namespace stepwell {

// Holds the trials' rows FOR KEY SHARE until the transaction ends. kAborted when another master
// owns one, kFailedPrecondition when one is gone. `trials` ascends.
absl::Status CheckOwner(PgConnection& connection, const std::vector<std::int64_t>& trials,
                        std::int64_t owner_epoch);

}  // namespace stepwell
