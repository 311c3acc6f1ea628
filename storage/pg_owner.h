// The checks that every transaction of an owner begins with. For the folder's skins; a commit has
// its own form of the first, which tells trials that are gone from trials of another owner.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/pg_connection.h"

namespace stepwell {

// Holds the trials' rows FOR KEY SHARE until the transaction ends. kAborted when another master
// owns one, kFailedPrecondition when one is gone or deleted. `trials` ascends.
absl::Status CheckOwner(PgConnection& connection, const std::vector<std::int64_t>& trials,
                        std::int64_t owner_epoch);

// As CheckOwner, but trials that were deleted are answered, ascending, instead of refused: what a
// deleted trial still had under way is kept nowhere, and holds up nobody.
absl::StatusOr<std::vector<std::int64_t>> CheckOwnerOfLiving(
    PgConnection& connection, const std::vector<std::int64_t>& trials, std::int64_t owner_epoch);

// For what belongs to no trial: holds the masters row FOR KEY SHARE until the transaction ends, which a take-over waits for.
// kAborted when it is another master's; without a row nobody has ever owned the database.
absl::Status CheckMaster(PgConnection& connection, std::int64_t owner_epoch);

}  // namespace stepwell
