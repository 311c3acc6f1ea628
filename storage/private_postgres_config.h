// The configuration of a private PostgreSQL: who may connect, and the few settings in which it
// differs from the defaults. Durability (fsync, synchronous_commit, full_page_writes) is never
// among them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "storage/private_postgres_cluster.h"

namespace stepwell {

// Once, after initdb: includes our file at the end of postgresql.conf, so that it wins over the
// defaults, and ALTER SYSTEM wins over it.
absl::Status WriteStaticConfig(const PostgresCluster& cluster, const std::string& data_directory);

// At every start: stepwell.conf, pg_hba.conf and pg_ident.conf. Only this process' user, root and
// the server's own user may connect, over the socket.
absl::Status WriteConfig(const PostgresCluster& cluster, const PrivatePostgres::Options& options);

}  // namespace stepwell
