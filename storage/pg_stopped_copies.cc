#include "storage/pg_stopped_copies.h"

#include <string>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

// $1 age in seconds. A session that copies is active, and reads from its client between two pieces.
constexpr char kEndStopped[] = R"(
select pid, application_name, extract(epoch from clock_timestamp() - query_start)::float8,
       pg_terminate_backend(pid)
from pg_stat_activity
where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
  and application_name like 'stepwell-%' and state = 'active' and wait_event = 'ClientRead'
  and query_start < clock_timestamp() - make_interval(secs => $1))";

}  // namespace

absl::StatusOr<int> EndStoppedCopies(PgConnection& connection, absl::Duration age) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult ended,
                            connection.Exec(kEndStopped, {absl::ToDoubleSeconds(age)}));
  for (int row = 0; row < ended.row_count(); ++row) {
    log::Warning("stopped_copy_ended", {{"session", std::string(ended.Text(row, 1))},
                                        {"backend", ended.Int64(row, 0)},
                                        {"seconds", ended.Float64(row, 2)}});
  }
  return ended.row_count();
}

}  // namespace stepwell
