// AdminClient: what the bench asks of the master and of its database. Blocks. Thread-safe but for sql().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "storage/pg_connection.h"

namespace stepwell::bench {

class AdminClient {
 public:
  static absl::StatusOr<std::unique_ptr<AdminClient>> Open(const std::string& address,
                                                           const std::string& database_url);

  // Of one trial, or of all ("").
  absl::Status SetCaps(const std::string& trial, const v1::Caps& caps);
  // A sweep from its beginning to its end; how many samples went.
  absl::StatusOr<std::int64_t> Sweep(const std::string& trial);
  // All of the trials like `trials` (a pattern of LIKE) is folded, and merged as far as their writers have
  // closed.
  absl::Status AwaitMerged(const std::string& trials);
  // Until the database has next to nothing to write: what was begun is over.
  absl::Status AwaitQuiet();

  // The first column of the only row.
  absl::StatusOr<std::int64_t> Number(const std::string& statement);
  PgConnection& sql() { return *sql_; }

 private:
  AdminClient(const std::string& address, std::unique_ptr<PgConnection> sql);

  const std::unique_ptr<v1::AdminService::Stub> stub_;
  const std::unique_ptr<PgConnection> sql_;
};

// Where the write-ahead log is, in bytes.
inline constexpr char kReadWal[] = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";

}  // namespace stepwell::bench
