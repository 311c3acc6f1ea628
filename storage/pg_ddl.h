// DDL beside ingest: transactions that give up after 20 ms of waiting for a lock, so that no reader
// can make them, and everybody behind them, wait. Functions for the folder's skins.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "storage/pg_connection.h"

namespace stepwell {

// Begin, lock_timeout of 20 ms, body, Commit; Rollback when the body fails.
absl::Status InDdlTransaction(PgConnection& connection, const std::function<absl::Status()>& body);

// Within a transaction: from here on it waits 20 ms at most for each lock.
absl::Status LimitLockWaits(PgConnection& connection);

// True when a lock was not to be had in time: come again.
bool IsLockTimeout(const absl::Status& status);

}  // namespace stepwell
