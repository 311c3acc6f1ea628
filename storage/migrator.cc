#include "storage/migrator.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

// "stepwell" as a number; any fixed one does, as long as nobody else in the database uses it.
constexpr std::int64_t kLockKey = 0x7374657077656c6c;

constexpr char kTableExists[] =
    "select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n "
    "on n.oid = c.relnamespace where n.nspname = 'stepwell' and c.relname = 'migrations')";
constexpr char kReadApplied[] =
    "select number, name, sha256 from stepwell.migrations order by number";
constexpr char kLock[] = "select pg_advisory_xact_lock($1)";
constexpr char kRecord[] =
    "insert into stepwell.migrations (number, name, sha256, applied_time) "
    "values ($1, $2, $3, now())";
// CREATE ... IF NOT EXISTS asks for the right to create even where the thing exists.
constexpr char kSchemaExists[] =
    "select exists (select from pg_catalog.pg_namespace where nspname = 'stepwell')";
constexpr char kCreateSchema[] = "create schema stepwell";
constexpr char kCreateTable[] =
    "create table stepwell.migrations ("
    "number int primary key, name text not null, sha256 text not null, "
    "applied_time timestamptz not null)";

struct Applied {
  int number;
  std::string name;
  std::string sha256;
};

absl::StatusOr<bool> Exists(PgConnection& connection, const SqlText& sql) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, connection.Exec(sql));
  return result.Bool(0, 0);
}

absl::StatusOr<std::vector<Applied>> ReadApplied(PgConnection& connection) {
  std::vector<Applied> applied;
  STEPWELL_ASSIGN_OR_RETURN(const bool exists, Exists(connection, kTableExists));
  if (!exists) return applied;
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection.Exec(kReadApplied));
  for (int row = 0; row < rows.row_count(); ++row) {
    applied.push_back(
        {rows.Int32(row, 0), std::string(rows.Text(row, 1)), std::string(rows.Text(row, 2))});
  }
  return applied;
}

absl::Status Newer(int at, int known) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "the database's schema is at migration %d, this binary knows %d; run the newer stepwell that "
      "made it, or restore a backup from before its upgrade (migrations only go forward)",
      at, known));
}

absl::Status Changed(const Applied& applied) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "migration %04d_%s was applied to this database with another text than this binary carries; "
      "run the stepwell release that made the database, or a later one",
      applied.number, applied.name));
}

void CheckNumbers(std::span<const Migration> known) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    STEPWELL_CHECK(known[i].number == static_cast<int>(i) + 1);
  }
}

// Numbers run without gaps from 1, so that what is applied is always a head of what is known.
absl::StatusOr<std::vector<Migration>> Pending(const std::vector<Applied>& applied,
                                               std::span<const Migration> known) {
  const int known_last = static_cast<int>(known.size());
  if (!applied.empty() && applied.back().number > known_last) {
    return Newer(applied.back().number, known_last);
  }
  for (const Applied& one : applied) {
    if (one.number < 1 || Sha256Hex(known[one.number - 1].sql.text()) != one.sha256)
      return Changed(one);
  }
  return std::vector<Migration>(known.begin() + static_cast<std::ptrdiff_t>(applied.size()),
                                known.end());
}

absl::Status MakeTable(PgConnection& connection) {
  STEPWELL_ASSIGN_OR_RETURN(const bool table, Exists(connection, kTableExists));
  if (table) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const bool schema, Exists(connection, kSchemaExists));
  if (!schema) STEPWELL_RETURN_IF_ERROR(connection.ExecScript(kCreateSchema));
  return connection.ExecScript(kCreateTable);
}

// In its own transaction. Another master may have applied it while we waited for the lock; then
// nothing is done and false is returned.
absl::StatusOr<bool> Apply(PgConnection& connection, const Migration& migration,
                           std::span<const Migration> known) {
  bool applied_now = false;
  const absl::Status status = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript("set local statement_timeout = 0"));
    STEPWELL_RETURN_IF_ERROR(connection.Exec(kLock, {kLockKey}).status());
    STEPWELL_RETURN_IF_ERROR(MakeTable(connection));
    STEPWELL_ASSIGN_OR_RETURN(const auto applied, ReadApplied(connection));
    STEPWELL_ASSIGN_OR_RETURN(const auto pending, Pending(applied, known));
    if (pending.empty() || pending.front().number != migration.number) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(migration.sql));
    applied_now = true;
    STEPWELL_RETURN_IF_ERROR(failpoint::Check("migration_before_commit"));
    return connection
        .Exec(kRecord,
              {std::int32_t{migration.number}, migration.name, Sha256Hex(migration.sql.text())})
        .status();
  });
  if (!status.ok()) {
    return Annotate(status, absl::StrFormat("migration %04d_%s", migration.number,
                                            std::string(migration.name)));
  }
  STEPWELL_FAILPOINT("migration_after_commit");
  return applied_now;
}

}  // namespace

std::string Sha256Hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

absl::StatusOr<std::vector<Migration>> PendingMigrations(PgConnection& connection,
                                                         std::span<const Migration> known) {
  CheckNumbers(known);
  STEPWELL_ASSIGN_OR_RETURN(const auto applied, ReadApplied(connection));
  return Pending(applied, known);
}

absl::StatusOr<std::vector<Migration>> Migrate(PgConnection& connection,
                                               std::span<const Migration> known) {
  STEPWELL_ASSIGN_OR_RETURN(const auto pending, PendingMigrations(connection, known));
  const absl::Duration usual = connection.reply_timeout();
  connection.set_reply_timeout(absl::InfiniteDuration());
  const auto restore = absl::MakeCleanup([&] { connection.set_reply_timeout(usual); });
  std::vector<Migration> applied;
  for (const Migration& migration : pending) {
    STEPWELL_ASSIGN_OR_RETURN(const bool applied_now, Apply(connection, migration, known));
    if (applied_now) applied.push_back(migration);
  }
  return applied;
}

}  // namespace stepwell
