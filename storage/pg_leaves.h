// PgLeaves: the daily partitions of metrics, ticks and their rollups. Created empty and attached in one transaction
// that never waits over 20 ms for a lock: unlike CREATE TABLE ... PARTITION OF, an ATTACH lets
// readers and writers of the other leaves go on. Confined to one thread.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "storage/pg_connection.h"

namespace stepwell {

class PgLeaves {
 public:
  // All tables' leaves of every keep class, from yesterday to in two days.
  absl::Status AttachAround(PgConnection& connection, std::int64_t now_us);
  // The leaves of one class and day. kUnavailable when somebody holds a lock: come again.
  absl::Status Ensure(PgConnection& connection, std::int16_t keep_class, std::int32_t day);
  // After anything went wrong: ask the database again.
  void Clear() { known_.clear(); }

 private:
  absl::Status Attach(PgConnection& connection, const char* table, std::int16_t keep_class,
                      std::int32_t day);

  std::set<std::pair<std::int16_t, std::int32_t>> known_;
};

}  // namespace stepwell
