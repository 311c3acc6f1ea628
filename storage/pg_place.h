// PgPlace: asks a database where it lies, and where its owner noted that it lay. Of a role that may not ask for the cluster's
// identifier or timeline it asks the rest. Stands under PgIncarnation, the owner's look, and under PgSessionPlace, which
// looks once on each session. Confined to one thread at a time.
//
//   STEPWELL_ASSIGN_OR_RETURN(const PgPlace::Told told, place.Read(connection));
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/uuid.h"
#include "storage/database_place.h"
#include "storage/pg_connection.h"

namespace stepwell {

class PgPlace {
 public:
  struct Told {
    Uuid incarnation;
    DatabasePlace noted;  // by an owner
    DatabasePlace now;
  };
  // REQUIRES: no transaction is open. An error for which IsOfOlderSchema is true: nobody can note places there.
  absl::StatusOr<Told> Read(PgConnection& connection);

  // Why a part cannot be told; OK where none was refused. Each further question would be a line in PostgreSQL's log.
  const absl::Status& refused() const { return refused_; }

  // PostgreSQL heard a question and answered that this role may not ask it, or that there is no such thing here: asking
  // again helps nothing. All else, a statement's limit among it, may be over with the next look.
  static bool IsRefusal(const absl::Status& status);
  // The table is as it was before the migration that gave it places.
  static bool IsOfOlderSchema(const absl::Status& status);

 private:
  absl::Status refused_;
};

}  // namespace stepwell
