#include "server/database_start.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "server/master_identity.h"
#include "storage/migrator.h"
#include "storage/pg_connection.h"
#include "storage/pg_error.h"
#include "storage/pg_server_check.h"
#include "storage/pg_url.h"
#include "storage/private_postgres.h"

namespace stepwell {
namespace {

absl::Status MakeDataDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error && access(directory.c_str(), R_OK | W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--data-dir ", directory, ": ", error.message(), "; allowed is a directory that user id ",
      geteuid(), " may read and write, or one that it may make"));
}

// What a master makes, or who starts it for the first time: their log, certificates, configuration. A mount point has
// lost+found.
bool IsMasters(const std::string& name) {
  static const std::set<std::string> kNames = {"certs", "lock",   "log",   "lost+found",
                                               "spool", "socket", "token", "ready.json"};
  for (const char* ending : {".log", ".pem", ".key", ".conf"}) {
    if (absl::EndsWith(name, ending)) return true;
  }
  return kNames.contains(name) || name == ".snapshot" || absl::StartsWith(name, "token.");
}

// A server that answers so will not answer otherwise by itself. libpq gives no SQLSTATE for a
// connection that was refused, only the server's words.
bool WantsAPerson(const absl::Status& status) {
  for (const char* words : {"does not exist", "authentication failed", "no pg_hba.conf entry",
                            "no password supplied"}) {
    if (absl::StrContains(status.message(), words)) return true;
  }
  return false;
}

absl::Status MigrateOnce(const std::string& url) {
  STEPWELL_ASSIGN_OR_RETURN(
      auto connection, PgConnection::Open({.url = url, .application_name = "stepwell-migrate"}));
  STEPWELL_RETURN_IF_ERROR(CheckServer(*connection));
  STEPWELL_ASSIGN_OR_RETURN(const auto applied, Migrate(*connection, EmbeddedMigrations()));
  for (const Migration& migration : applied) {
    log::Info("migrated", {{"number", migration.number}, {"name", std::string(migration.name)}});
  }
  return absl::OkStatus();
}

absl::Status CheckOneDatabase(const ServeOptions& options) {
  if (options.database_url.empty() || options.data_dir.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--data-dir and --database-url exclude each other: the first is for a private PostgreSQL;"
      " leave one out");
}

}  // namespace

// One of somebody else's, /etc for example, is not filled with a database.
absl::Status CheckDataDirectory(const ServeOptions& options) {
  // First, for one that may not be given need not be a fit one.
  STEPWELL_RETURN_IF_ERROR(CheckOneDatabase(options));
  const std::string& directory = options.data_dir;
  if (directory.empty()) return absl::OkStatus();
  const std::string as_given = absl::StrCat("--data-dir ", directory, ": ");
  std::error_code error;
  std::optional<std::string> strange;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    // Also one whose database was moved aside, as we advise at times.
    if (name == "pg" || absl::StartsWith(name, "pg.") || name == "master-id") {
      return absl::OkStatus();
    }
    if (!IsMasters(name)) strange = name;
  }
  // One that is not there yet, or no directory: who makes it says so.
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
      error == std::errc::permission_denied) {
    return absl::OkStatus();
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat(as_given, error.message()));
  if (!strange) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(as_given, "is no master's, it has ", *strange,
                   "; allowed is a new or empty directory, or one that a master made"));
}

absl::StatusOr<StartedDatabase> StartDatabase(const ServeOptions& options) {
  StartedDatabase started;
  STEPWELL_RETURN_IF_ERROR(CheckOneDatabase(options));
  if (!options.database_url.empty()) {
    STEPWELL_RETURN_IF_ERROR(
        Annotate(PgConninfo(options.database_url, {}).status(), "--database-url"));
    started.url = options.database_url;
    return started;
  }
  started.data_directory = options.data_dir;
  if (started.data_directory.empty()) {
    STEPWELL_ASSIGN_OR_RETURN(started.data_directory, DefaultDataDirectory());
  }
  std::error_code error;
  started.data_directory = std::filesystem::absolute(started.data_directory, error).string();
  STEPWELL_RETURN_IF_ERROR(MakeDataDirectory(started.data_directory));
  PrivatePostgres::Options private_options;
  private_options.directory = started.data_directory;
  private_options.user = options.pg_user;
  private_options.binary_directory = options.pg_bindir;
  STEPWELL_ASSIGN_OR_RETURN(started.postgres, PrivatePostgres::Open(std::move(private_options)));
  started.url = started.postgres->url();
  return started;
}

absl::Status BringSchema(const std::string& url, MasterState& state,
                         const std::function<bool()>& stop_asked) {
  // One master asks, and agents wait for it as long as it waits for its database.
  Backoff backoff({.first = absl::Milliseconds(100), .longest = absl::Seconds(1)});
  while (true) {
    absl::Status status = MigrateOnce(url);
    state.SetDatabase(status);
    if (status.code() == absl::StatusCode::kUnavailable && WantsAPerson(status)) {
      return absl::FailedPreconditionError(
          absl::StrCat(status.message(), "; make the database (createdb) or mend user and password",
                       " of --database-url ", ShownUrl(url)));
    }
    if (status.code() == absl::StatusCode::kPermissionDenied) {
      return Annotate(
          status,
          "this role may not change the schema; a role that may does it first, with --migrate-only "
          "(deploy/postgres/roles.sql)");
    }
    const bool heals = status.code() == absl::StatusCode::kUnavailable ||
                       status.code() == absl::StatusCode::kDeadlineExceeded;
    if (!heals) return status;
    log::Warning("database_down", {{"status", std::string(status.message())}});
    const SteadyTime retry_time = SteadyTime::Now() + backoff.NextDelay();
    while (!retry_time.HasPassed()) {
      if (stop_asked()) return absl::CancelledError("stopped while the database did not answer");
      absl::SleepFor(absl::Milliseconds(50));
    }
  }
}

namespace {

std::vector<std::string> NamesOf(const std::vector<Migration>& migrations) {
  std::vector<std::string> names;
  names.reserve(migrations.size());
  for (const Migration& migration : migrations) {
    names.push_back(absl::StrFormat("%04d_%s", migration.number, std::string(migration.name)));
  }
  return names;
}

// A start would make it: whoever only asks must not.
absl::StatusOr<bool> IsUnmade(const ServeOptions& options) {
  if (!options.database_url.empty()) return false;
  std::string directory = options.data_dir;
  if (directory.empty()) {
    STEPWELL_ASSIGN_OR_RETURN(directory, DefaultDataDirectory());
  }
  std::error_code error;
  return !std::filesystem::exists(directory, error) && !error;
}

absl::StatusOr<std::unique_ptr<PgConnection>> ConnectOnce(const StartedDatabase& started) {
  if (started.postgres != nullptr) {
    STEPWELL_RETURN_IF_ERROR(started.postgres->WaitReady(SteadyTime::Now() + absl::Minutes(1)));
  }
  return PgConnection::Open({.url = started.url, .application_name = "stepwell-migrate"});
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PendingSchema(const ServeOptions& options) {
  STEPWELL_ASSIGN_OR_RETURN(const bool unmade, IsUnmade(options));
  if (unmade) return NamesOf({EmbeddedMigrations().begin(), EmbeddedMigrations().end()});
  STEPWELL_ASSIGN_OR_RETURN(const StartedDatabase started, StartDatabase(options));
  STEPWELL_ASSIGN_OR_RETURN(const auto connection, ConnectOnce(started));
  STEPWELL_ASSIGN_OR_RETURN(const auto pending,
                            PendingMigrations(*connection, EmbeddedMigrations()));
  return NamesOf({pending.begin(), pending.end()});
}

absl::StatusOr<std::vector<std::string>> MigrateSchema(const ServeOptions& options) {
  STEPWELL_ASSIGN_OR_RETURN(const StartedDatabase started, StartDatabase(options));
  STEPWELL_ASSIGN_OR_RETURN(const auto connection, ConnectOnce(started));
  STEPWELL_RETURN_IF_ERROR(CheckServer(*connection));
  STEPWELL_ASSIGN_OR_RETURN(const auto applied, Migrate(*connection, EmbeddedMigrations()));
  return NamesOf({applied.begin(), applied.end()});
}

std::string ShownUrl(const std::string& url) { return RedactPasswords(url); }

}  // namespace stepwell
