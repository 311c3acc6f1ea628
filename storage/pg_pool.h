// PgPool: up to N connections for all SQL that is not the writer's or a COPY, over libpqxx. It is
// the one shim between us and that library: exceptions end here. Thread-safe.
//
//   absl::Status status = pool.Run(PgPool::Access::kRead, deadline, [&](pqxx::transaction_base& tx) {
//     for (const auto& row : tx.exec_params("select name from stepwell.projects where ...", id))
//       names.push_back(row[0].as<std::string>());
//     return absl::OkStatus();
//   });
//
// The body's file includes <pqxx/pqxx> and uses only what both 6.4 and 7 have: exec, exec_params,
// quote, result[i][j].as<T>(), is_null. It catches nothing of pqxx: what it throws becomes a status
// here. A connection that saw any failure is closed, never used again, because 6.4 reconnects
// silently. A server that stops answering is cut off shortly after the deadline.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/worker.h"
#include "storage/pg_error.h"

namespace pqxx {
class transaction_base;
}

namespace stepwell {

class PgPool {
 public:
  struct Options {
    std::string url = {};
    std::string application_name = "stepwell pool";
    int connection_count_max = 4;
    absl::Duration connect_timeout = absl::Seconds(5);
    // The longest that one statement may take, however far the deadline is.
    absl::Duration statement_timeout = absl::Seconds(30);
  };
  enum class Access {
    kRead,   // REPEATABLE READ, READ ONLY: all statements of the body see one snapshot
    kWrite,  // READ COMMITTED
  };
  using Body = std::function<absl::Status(pqxx::transaction_base&)>;

  // Connects at the first use. kInvalidArgument when the URL cannot be parsed.
  static absl::StatusOr<std::unique_ptr<PgPool>> Open(Options options);
  // REQUIRES: no Run is in progress.
  ~PgPool();

  // Runs `body` once in a transaction and commits; a status that is not OK, or an exception, rolls
  // back. Blocks until a connection is free, kDeadlineExceeded at `deadline`. CommitUnknown when the
  // connection was lost during COMMIT. Does not retry.
  absl::Status Run(Access access, absl::Time deadline, const Body& body) ABSL_LOCKS_EXCLUDED(mu_);

  // Open ones, idle or not; for status pages.
  int connection_count() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Link;  // one connection, defined in pg_pool.cc

  PgPool(Options options, std::string conninfo);
  absl::StatusOr<std::unique_ptr<Link>> Acquire(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mu_);
  // Null when the connection is to be forgotten.
  void Release(std::unique_ptr<Link> link) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<Link>> Connect() const;
  struct Outcome {
    absl::Status status;
    // False after an exception: the connection is not to be trusted.
    bool sound = false;
  };
  Outcome RunOn(Link& link, Access access, absl::Time deadline, const Body& body);
  std::string Preface(Access access, absl::Time deadline) const;
  // Cuts off connections whose deadline has passed.
  void Watch() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const std::string conninfo_;

  mutable absl::Mutex mu_;
  std::vector<std::unique_ptr<Link>> idle_ ABSL_GUARDED_BY(mu_);
  // Owned by the Run in progress.
  std::list<Link*> busy_ ABSL_GUARDED_BY(mu_);
  int connection_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // Counts changes of busy_, so that Watch looks again.
  std::int64_t busy_changes_ ABSL_GUARDED_BY(mu_) = 0;

  Worker watcher_;
};

}  // namespace stepwell
