// PgIncarnation: the owner's look at whether the database is still the one that it was. Where it lies elsewhere than at
// the last look of an owner (database_place.h), it gets a new incarnation and remembers its new place, in one transaction. That
// a new timeline came by a promotion that lost nothing nobody can tell here: an incarnation only makes clients look
// again, who lose nothing by it. Confined to one thread at a time.
//
//   STEPWELL_ASSIGN_OR_RETURN(owner.incarnation, incarnation.Look(*connection, owner.epoch));
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/uuid.h"
#include "storage/database_place.h"
#include "storage/pg_connection.h"
#include "storage/pg_place.h"

namespace stepwell {

class PgIncarnation {
 public:
  // REQUIRES: no transaction is open. kAborted: `owner_epoch` is over, and nothing was changed. One round trip where
  // nothing is new. A role that may not ask for the cluster's identifier or timeline, or may not note them, has that said
  // in the log, once for each reason; the rest is compared all the same. A table of before it could say so, as after a recovery
  // under a living master, is migrated, which takes as long as that takes; where the role may not, its place is not known.
  absl::StatusOr<Uuid> Look(PgConnection& connection, std::int64_t owner_epoch);

  // As of the newest Look that succeeded; each 0 = not known.
  const DatabasePlace& looked_at() const { return looked_at_; }

 private:
  absl::StatusOr<PgPlace::Told> Read(PgConnection& connection);
  absl::StatusOr<PgPlace::Told> ReadOlder(PgConnection& connection);
  absl::StatusOr<bool> MigrateAgain(PgConnection& connection);
  void TellUntold(const absl::Status& why, const char* what);

  PgPlace place_;
  bool is_refusal_told_ = false;
  // False once the role was refused: each further question would be a line in PostgreSQL's log.
  bool notes_ = true;
  // Until the columns are there.
  bool is_older_told_ = false;
  // Where the newest look found it.
  DatabasePlace looked_at_;
};

}  // namespace stepwell
