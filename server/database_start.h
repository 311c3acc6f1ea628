// DatabaseStart: from settings to a database with our schema: the private PostgreSQL, or the given
// one, then the migrations.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/master_state.h"
#include "server/options.h"

namespace stepwell {

class PrivatePostgres;  // storage/private_postgres.h

struct StartedDatabase {
  std::string url;
  // Null with --database-url.
  std::unique_ptr<PrivatePostgres> postgres;
  // Empty with --database-url.
  std::string data_directory;
};

// Of --data-dir, before anything is written there. kFailedPrecondition: it is somebody else's.
// kInvalidArgument: a URL is given as well.
absl::Status CheckDataDirectory(const ServeOptions& options);

// Creates the data directory and starts a private PostgreSQL in it; with a URL only checks that.
// kFailedPrecondition and kInvalidArgument say what must be put right.
absl::StatusOr<StartedDatabase> StartDatabase(const ServeOptions& options);

// Migrates. While the database does not answer, tells `state` and tries again, until `stop_asked`:
// kCancelled. Anything that will not heal by itself is returned.
absl::Status BringSchema(const std::string& url, MasterState& state,
                         const std::function<bool()>& stop_asked);

// Names of the migrations that a start would apply, such as "0002_read_sql". Changes nothing; a
// private PostgreSQL runs for the time of the call.
absl::StatusOr<std::vector<std::string>> PendingSchema(const ServeOptions& options);

// Applies them and ends, by a role that may change the schema where the master's own may not
// (deploy/postgres/roles.sql). Names of what was applied.
absl::StatusOr<std::vector<std::string>> MigrateSchema(const ServeOptions& options);

// `url` without its password, for people.
std::string ShownUrl(const std::string& url);

}  // namespace stepwell
