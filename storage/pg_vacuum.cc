#include "storage/pg_vacuum.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

// Far beyond what a segment of recent takes; until then nobody waits for it.
constexpr absl::Duration kReplyTimeout = absl::Minutes(10);

}  // namespace

PgVacuum::PgVacuum(PgConnection::Options options) : options_(std::move(options)) {}

PgVacuum::~PgVacuum() {
  Cancel();
  worker_.Join();
}

void PgVacuum::Start(std::vector<SqlText> tables, Task task) {
  {
    absl::MutexLock lock(&mu_);
    STEPWELL_CHECK(!busy_);
    busy_ = true;
  }
  worker_ = Worker("vacuum", [this, task, tables = std::move(tables)] {
    absl::Status result = Run(tables, task);
    absl::MutexLock lock(&mu_);
    result_ = std::move(result);
    backend_pid_ = 0;
    busy_ = false;
  });
}

bool PgVacuum::busy() const {
  absl::MutexLock lock(&mu_);
  return busy_;
}

absl::Status PgVacuum::result() const {
  absl::MutexLock lock(&mu_);
  return result_;
}

bool PgVacuum::NoteBackend(int backend_pid) {
  absl::MutexLock lock(&mu_);
  backend_pid_ = backend_pid;
  return !stopping_;
}

absl::Status PgVacuum::Run(const std::vector<SqlText>& tables, Task task) {
  STEPWELL_ASSIGN_OR_RETURN(const auto connection, PgConnection::Open(options_));
  connection->set_reply_timeout(kReplyTimeout);
  if (!NoteBackend(connection->backend_pid())) return absl::CancelledError("the store is closing");
  const SqlText command = task == Task::kVacuum ? SqlText("vacuum (skip_locked, truncate false) ")
                                                : SqlText("analyze (skip_locked) ");
  for (const SqlText& table : tables) {
    STEPWELL_RETURN_IF_ERROR(connection->ExecScript(SqlCat({command, table})));
  }
  return absl::OkStatus();
}

void PgVacuum::Cancel() {
  int backend_pid = 0;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    backend_pid = backend_pid_;
  }
  if (backend_pid == 0) return;
  // By force: a cancel between two tables would be lost. Failing, the server is gone, and with it
  // what the thread waits for.
  const auto connection = PgConnection::Open(options_);
  if (!connection.ok()) return;
  (*connection)->Exec("select pg_terminate_backend($1)", {backend_pid}).status().IgnoreError();
}

}  // namespace stepwell
