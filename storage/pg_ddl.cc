#include "storage/pg_ddl.h"

#include "base/status_macros.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {
constexpr char kLockNotAvailable[] = "55P03";
constexpr char kDeadlockDetected[] = "40P01";
}  // namespace

absl::Status InDdlTransaction(PgConnection& connection, const std::function<absl::Status()>& body) {
  return connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(LimitLockWaits(connection));
    return body();
  });
}

absl::Status LimitLockWaits(PgConnection& connection) {
  return connection.ExecScript("set local lock_timeout = '20ms'");
}

bool IsLockTimeout(const absl::Status& status) {
  const std::string sqlstate = SqlState(status);
  return sqlstate == kLockNotAvailable || sqlstate == kDeadlockDetected;
}

}  // namespace stepwell
