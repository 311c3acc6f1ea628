#include "storage/pg_place.h"

#include "base/status_macros.h"
#include "storage/pg_error.h"
#include "storage/pg_sql.h"

namespace stepwell {
namespace {

DatabasePlace PlaceAt(const PgResult& row, int column) {
  return {.system_identifier = row.Int64(0, column),
          .timeline = row.Int64(0, column + 1),
          .database_oid = row.Int64(0, column + 2),
          .table_oid = row.Int64(0, column + 3)};
}

}  // namespace

bool PgPlace::IsRefusal(const absl::Status& status) {
  const std::string state = SqlState(status);
  return state == "42501" || state == "0A000" || state == "42883";
}

bool PgPlace::IsOfOlderSchema(const absl::Status& status) { return SqlState(status) == "42703"; }

absl::StatusOr<PgPlace::Told> PgPlace::Read(PgConnection& connection) {
  auto row = connection.Exec(refused_.ok() ? SqlText(sql::kReadDatabase)
                                           : SqlText(sql::kReadDatabaseAlone));
  if (refused_.ok() && IsRefusal(row.status())) {
    refused_ = row.status();
    row = connection.Exec(sql::kReadDatabaseAlone);
  }
  STEPWELL_RETURN_IF_ERROR(row.status());
  if (row->row_count() != 1) return absl::DataLossError("stepwell.database must hold one row");
  return Told{row->UuidAt(0, 0), PlaceAt(*row, 1), PlaceAt(*row, 5)};
}

}  // namespace stepwell
