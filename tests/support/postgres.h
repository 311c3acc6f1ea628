// TestPostgres: one real PostgreSQL per test process, started at the first use (~0.7 s) and stopped
// at its end. Each test takes a database of its own.
//
//   const std::string url = TestPostgres::Get().FreshDatabase();
//
// It is the product's own private server with small buffers and without fsync: a killed process
// loses nothing by that, only a killed machine does. Tests of durability open their own. Databases
// are not dropped; they go with the server. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "storage/pg_connection.h"
#include "storage/private_postgres.h"

namespace stepwell::testing {

class TestPostgres {
 public:
  // Aborts with the reason when PostgreSQL cannot be started.
  static TestPostgres& Get();

  // URL of a new, empty database (~30 ms).
  std::string FreshDatabase();
  // URL of a new database with this binary's schema: a copy of one that was migrated once (~40 ms).
  std::string FreshMigratedDatabase();

  // From here on with fsync: masters refuse a server without. The same object.
  TestPostgres& Durable();

  PrivatePostgres& server() { return *server_; }

 private:
  friend class PostgresEnvironment;
  explicit TestPostgres(std::unique_ptr<PrivatePostgres> server);
  std::string CreateFrom(const std::string& origin);

  const std::unique_ptr<PrivatePostgres> server_;
  std::atomic<int> database_count_ = 0;
  absl::Mutex migrated_mu_;
  bool migrated_ ABSL_GUARDED_BY(migrated_mu_) = false;
};

// A connection to `url`; aborts when there is none.
std::unique_ptr<PgConnection> Connect(const std::string& url);

}  // namespace stepwell::testing
