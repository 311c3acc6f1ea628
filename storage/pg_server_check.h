// Whether a PostgreSQL server can keep what an ack promises: new enough, UTF-8, and with fsync on.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "storage/pg_connection.h"

namespace stepwell {

// What a server says of itself.
struct PgServerFacts {
  int version = 0;            // 150020 for 15.20
  std::string encoding = {};  // of the database
  bool fsync = true;
  bool full_page_writes = true;
};

// kFailedPrecondition with the setting, what it is and how to mend it. A core; pure.
absl::Status CheckServerFacts(const PgServerFacts& facts);

// Asks the server.
absl::Status CheckServer(PgConnection& connection);

}  // namespace stepwell
