// PgSessionPlace: whether a session's database is the one that its epoch took, asked once on each session. A session that
// ended may have been of another database: a standby was promoted, or a recovery took its place. What waits in memory names series
// and places by numbers of the one before, of which this one may lack the last and give them to others. The owner looks each
// two seconds and has all of it read again; until then nothing of that epoch is written. Stands under PgWriter and PgFoldStore.
// Confined to one thread at a time.
//
//   STEPWELL_RETURN_IF_ERROR(place.Check(*connection, link.opened_count(), owner_epoch));
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "storage/owned_place.h"
#include "storage/pg_connection.h"
#include "storage/pg_place.h"

namespace stepwell {

class PgSessionPlace {
 public:
  // `owned` null: nothing is compared.
  explicit PgSessionPlace(std::shared_ptr<const OwnedPlace> owned) : owned_(std::move(owned)) {}

  // kAborted: it lies elsewhere, and this epoch is over. `session` as PgLink::opened_count. One round trip for a session that
  // is new. REQUIRES: no transaction is open.
  absl::Status Check(PgConnection& connection, std::int64_t session, std::int64_t owner_epoch);

 private:
  const std::shared_ptr<const OwnedPlace> owned_;
  PgPlace place_;
  std::int64_t session_ = 0;  // whose database is the epoch's
};

}  // namespace stepwell
