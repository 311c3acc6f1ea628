#include "storage/pg_incarnation.h"

#include "base/log.h"
#include "base/status_macros.h"
#include "storage/database_place.h"
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

// PostgreSQL heard the question and answered that it may not be asked, or not here: asking again helps nothing.
bool IsRefusal(const absl::Status& status) {
  return !status.ok() && !SqlState(status).empty() && !IsRetryable(status);
}

}  // namespace

struct PgIncarnation::Seen {
  Uuid incarnation;
  DatabasePlace before;
  DatabasePlace now;
};

absl::StatusOr<Uuid> PgIncarnation::Look(PgConnection& connection, std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(Seen seen, Read(connection));
  const DatabasePlace known = KnownPlace(seen.before, seen.now);
  if (known == seen.before || !notes_) return seen.incarnation;
  const std::string change = PlaceChange(seen.before, seen.now);
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
  STEPWELL_RETURN_IF_ERROR(row.status());
  if (row->row_count() != 1) return absl::DataLossError("stepwell.database must hold one row");
  return Seen{row->UuidAt(0, 0), PlaceAt(*row, 1), PlaceAt(*row, 5)};
}

void PgIncarnation::TellUntold(const absl::Status& why, const char* what) {
  log::Warning("database_place_unknown", {{"status", why.ToString()}, {"so", what}});
}

}  // namespace stepwell
