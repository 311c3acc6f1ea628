// PostgresCluster: the files of a private PostgreSQL: where they are, whose they are, and that they
// are fit to be started. Thread-compatible; constant after Prepare.
//
// DIRECTORY/            the master's; only what follows is touched
//   lock                held while we live, with our pid in it
//   pg/                 the data directory, 0700, owned by the server's user
//   pg.partial/         an initdb that did not end; removed at the next start
//   socket/             0700, owned by the server's user; a short directory elsewhere when the path
//                       would be too long for a unix socket
//   postgres.log[.1]    the server's messages
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/private_postgres.h"
#include "storage/private_postgres_account.h"
#include "storage/private_postgres_binaries.h"
#include "storage/private_postgres_process.h"

namespace stepwell {

inline constexpr char kPrivateRole[] = "stepwell";
inline constexpr char kPrivateDatabase[] = "stepwell";

struct PostgresCluster {
  // Takes the lock, runs initdb when there is no data directory yet (~0.5 s), writes the
  // configuration. Every refusal names the file and the remedy.
  static absl::StatusOr<std::unique_ptr<PostgresCluster>> Prepare(
      const PrivatePostgres::Options& options);

  // Lets another process take the directory. REQUIRES: the server is gone.
  void Unlock();
  std::string Url(const std::string& database) const;

  std::string data_directory;
  std::string socket_directory;
  std::string log_file;
  PostgresAccount account;
  PostgresBinaries binaries;
  OwnedFd lock;
};

}  // namespace stepwell
