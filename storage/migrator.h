// Migrator: brings a database to the schema that this binary knows. Forward only; each migration in
// one transaction, under an advisory lock, so that two starting masters do not collide. What was
// applied, with the hash of its text, stands in stepwell.migrations. Blocking; no state.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto applied, Migrate(*connection, EmbeddedMigrations()));
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/pg_connection.h"
#include "storage/sql_text.h"

namespace stepwell {

struct Migration {
  // From 1, without gaps.
  int number = 0;
  // The file's name without number and suffix: "schema" of 0001_schema.sql.
  std::string_view name;
  // One or more statements without BEGIN and COMMIT. A statement that cannot run in a transaction
  // has no place here.
  SqlText sql;
};

// The files of migrations/, compiled in, in order.
std::span<const Migration> EmbeddedMigrations();

// Lower-case hex of SHA-256.
std::string Sha256Hex(std::string_view text);

// The migrations that Migrate would apply now. Reads only, and works without the right to create
// anything. kFailedPrecondition when the database is newer than this binary, or when the text of an
// applied migration has changed.
absl::StatusOr<std::vector<Migration>> PendingMigrations(PgConnection& connection,
                                                         std::span<const Migration> known);

// Applies what is pending, in order, and returns it. Stops at the first failure: those before it
// stay applied. Statements run without a time limit: a migration of much data takes long.
absl::StatusOr<std::vector<Migration>> Migrate(PgConnection& connection,
                                               std::span<const Migration> known);

}  // namespace stepwell
