#include "storage/pg_owner.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_sql.h"

namespace stepwell {

absl::Status CheckOwner(PgConnection& connection, const std::vector<std::int64_t>& trials,
                        std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> deleted,
                            CheckOwnerOfLiving(connection, trials, owner_epoch));
  if (deleted.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(deleted.size(), " of ", trials.size(), " trials are deleted"));
}

absl::StatusOr<std::vector<std::int64_t>> CheckOwnerOfLiving(
    PgConnection& connection, const std::vector<std::int64_t>& trials, std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult owned,
                            connection.ExecKept(sql::kCheckOwner, {PgArray(trials), owner_epoch}));
  const auto asked = static_cast<int>(trials.size());
  if (owned.row_count() == asked) {
    std::vector<std::int64_t> deleted;
    for (int row = 0; row < owned.row_count(); ++row) {
      if (owned.Bool(row, 1)) deleted.push_back(owned.Int64(row, 0));
    }
    return deleted;
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult existing,
                            connection.Exec(sql::kReadTrialsOf, {PgArray(trials)}));
  if (existing.row_count() > owned.row_count()) {
    return absl::AbortedError(
        absl::StrCat("owner epoch ", owner_epoch, " is over: another master owns ",
                     existing.row_count() - owned.row_count(), " of ", asked, " trials"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(asked - existing.row_count(), " of ", asked, " trials are gone"));
}

absl::Status CheckMaster(PgConnection& connection, std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult owner, connection.Exec(sql::kLockOwner));
  if (owner.row_count() == 0 || owner.Int64(0, 0) == owner_epoch) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("owner epoch ", owner_epoch,
                                         " is over: another master owns the database since epoch ",
                                         owner.Int64(0, 0)));
}

}  // namespace stepwell
