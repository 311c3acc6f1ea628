#include "storage/pg_incarnation.h"

#include "base/log.h"
#include "base/status_macros.h"
#include "storage/database_place.h"
#include "storage/migrator.h"
#include "storage/pg_error.h"
#include "storage/pg_owner.h"
#include "storage/pg_sql.h"

namespace stepwell {

absl::StatusOr<Uuid> PgIncarnation::Look(PgConnection& connection, std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgPlace::Told seen, Read(connection));
  const DatabasePlace known = KnownPlace(seen.noted, seen.now);
  // A row of before anybody looked says nothing: this object may have looked at the one that it was recovered from.
  const std::string change = PlaceChange(KnownPlace(looked_at_, seen.noted), seen.now);
  if (known == seen.noted || !notes_) {
    looked_at_ = KnownPlace(looked_at_, seen.now);
    return seen.incarnation;
  }
  Uuid incarnation = seen.incarnation;
  const absl::Status noted = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult row,
        connection.Exec(sql::kNoteDatabase, {!change.empty(), known.system_identifier,
                                             known.timeline, known.database_oid, known.table_oid}));
    if (row.row_count() == 1) incarnation = row.UuidAt(0, 0);
    return absl::OkStatus();
  });
  if (PgPlace::IsRefusal(noted)) {
    notes_ = false;
    TellUntold(noted, "a restored database is noticed by clients alone");
    return seen.incarnation;
  }
  STEPWELL_RETURN_IF_ERROR(noted);
  looked_at_ = KnownPlace(looked_at_, seen.now);
  if (!change.empty()) {
    log::Warning("database_is_another", {{"change", change},
                                         {"incarnation", incarnation.ToText()},
                                         {"why",
                                          "it was restored, recovered to a point in time, or is a "
                                          "promoted standby: clients are asked what it lacks"}});
  }
  return incarnation;
}

absl::StatusOr<PgPlace::Told> PgIncarnation::Read(PgConnection& connection) {
  auto told = place_.Read(connection);
  if (!place_.refused().ok() && !is_refusal_told_) {
    is_refusal_told_ = true;
    TellUntold(place_.refused(), "a recovery to a point in time is noticed by clients alone");
  }
  if (PgPlace::IsOfOlderSchema(told.status())) {
    STEPWELL_ASSIGN_OR_RETURN(const bool migrated, MigrateAgain(connection));
    if (!migrated) return ReadOlder(connection);
    return Read(connection);
  }
  if (told.ok()) is_older_told_ = false;
  return told;
}

// A recovery to before a migration, under a master that lives on. False where it cannot be helped from here.
absl::StatusOr<bool> PgIncarnation::MigrateAgain(PgConnection& connection) {
  if (is_older_told_) return false;
  const auto migrated = Migrate(connection, EmbeddedMigrations());
  if (migrated.ok() && !migrated->empty()) {
    log::Warning("database_migrated_again",
                 {{"migrations", migrated->size()}, {"why", "it is of before them"}});
    return true;
  }
  const absl::Status why =
      migrated.ok() ? absl::FailedPreconditionError("no migration is pending") : migrated.status();
  if (IsRetryable(why) || absl::IsDeadlineExceeded(why)) return why;
  is_older_told_ = true;
  TellUntold(why, "a restored database is noticed by clients alone until it is migrated");
  return false;
}

absl::StatusOr<PgPlace::Told> PgIncarnation::ReadOlder(PgConnection& connection) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection.Exec(sql::kReadIncarnation));
  if (row.row_count() != 1) return absl::DataLossError("stepwell.database must hold one row");
  return PgPlace::Told{row.UuidAt(0, 0), {}, {}};
}

void PgIncarnation::TellUntold(const absl::Status& why, const char* what) {
  log::Warning("database_place_unknown", {{"status", why.ToString()}, {"so", what}});
}

}  // namespace stepwell
