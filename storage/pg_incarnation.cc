#include "storage/pg_incarnation.h"

#include "base/log.h"
#include "base/status_macros.h"
#include "storage/database_place.h"
#include "storage/migrator.h"
#include "storage/pg_error.h"
#include "storage/pg_owner.h"
#include "storage/pg_sql.h"

namespace stepwell {
namespace {

DatabasePlace PlaceAt(const PgResult& row, int column) {
  return {.system_identifier = row.Int64(0, column),
          .timeline = row.Int64(0, column + 1),
          .database_oid = row.Int64(0, column + 2),
          .table_oid = row.Int64(0, column + 3)};
}

// PostgreSQL heard the question and answered that this role may not ask it, or that there is no such thing here: asking again
// helps nothing. All else, a statement's limit among it, may be over with the next look.
bool IsRefusal(const absl::Status& status) {
  const std::string state = SqlState(status);
  return state == "42501" || state == "0A000" || state == "42883";
}

// The table is as it was before the migration that gave it places.
bool IsOfOlderSchema(const absl::Status& status) { return SqlState(status) == "42703"; }

}  // namespace

struct PgIncarnation::Seen {
  Uuid incarnation;
  DatabasePlace before;
  DatabasePlace now;
};

absl::StatusOr<Uuid> PgIncarnation::Look(PgConnection& connection, std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(Seen seen, Read(connection));
  const DatabasePlace known = KnownPlace(seen.before, seen.now);
  // A row of before anybody looked says nothing: this object may have looked at the one that it was recovered from.
  const std::string change = PlaceChange(KnownPlace(looked_at_, seen.before), seen.now);
  if (known == seen.before || !notes_) {
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
  if (IsRefusal(noted)) {
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

absl::StatusOr<PgIncarnation::Seen> PgIncarnation::Read(PgConnection& connection) {
  auto row = connection.Exec(asks_cluster_ ? SqlText(sql::kReadDatabase)
                                           : SqlText(sql::kReadDatabaseAlone));
  if (asks_cluster_ && IsRefusal(row.status())) {
    asks_cluster_ = false;
    TellUntold(row.status(), "a recovery to a point in time is noticed by clients alone");
    row = connection.Exec(sql::kReadDatabaseAlone);
  }
  if (IsOfOlderSchema(row.status())) {
    STEPWELL_ASSIGN_OR_RETURN(const bool migrated, MigrateAgain(connection));
    if (!migrated) return ReadOlder(connection);
    return Read(connection);
  }
  STEPWELL_RETURN_IF_ERROR(row.status());
  is_older_told_ = false;
  if (row->row_count() != 1) return absl::DataLossError("stepwell.database must hold one row");
  return Seen{row->UuidAt(0, 0), PlaceAt(*row, 1), PlaceAt(*row, 5)};
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

absl::StatusOr<PgIncarnation::Seen> PgIncarnation::ReadOlder(PgConnection& connection) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection.Exec(sql::kReadIncarnation));
  if (row.row_count() != 1) return absl::DataLossError("stepwell.database must hold one row");
  return Seen{row.UuidAt(0, 0), {}, {}};
}

void PgIncarnation::TellUntold(const absl::Status& why, const char* what) {
  log::Warning("database_place_unknown", {{"status", why.ToString()}, {"so", what}});
}

}  // namespace stepwell
