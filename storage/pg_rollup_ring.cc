#include "storage/pg_rollup_ring.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/pg_ddl.h"
#include "storage/pg_fold_sql.h"
#include "storage/pg_owner.h"
#include "storage/pg_rollup_move.h"

namespace stepwell {
namespace {

// How long a class and day whose rows cannot be moved (a damaged page, a disk that is too slow) does not
// keep the others waiting.
constexpr absl::Duration kAside = absl::Minutes(5);

constexpr char kListWaiting[] = R"(
select distinct keep_class, received_day from stepwell.recent_rollup_ticks)";

SqlText TablesOf(int segment) {
  return SqlCat({RollupSegment("rollups", segment), ", ", RollupSegment("rollup_ticks", segment)});
}

SqlText EmptySql(int segment) {
  return SqlCat({"select not exists (select from ", RollupSegment("rollups", segment),
                 ") and not exists (select from ", RollupSegment("rollup_ticks", segment), ")"});
}

}  // namespace

void PgRollupRing::NoteWritten(const LeafKey& leaf) {
  held_.insert(leaf);
  segments_[static_cast<std::size_t>(RollupSegmentOf(leaf.received_day))] = {};
}

absl::Status PgRollupRing::Know(PgConnection& connection) {
  if (is_known_) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection.Exec(kListWaiting));
  held_.clear();
  for (int row = 0; row < rows.row_count(); ++row) {
    held_.insert({static_cast<std::int16_t>(rows.Int32(row, 0)), rows.DateDays(row, 1)});
  }
  segments_ = {};
  is_known_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> PgRollupRing::MoveBefore(PgConnection& connection, std::int64_t owner_epoch,
                                              std::int32_t first_day) {
  STEPWELL_RETURN_IF_ERROR(Know(connection));
  const SteadyTime now = SteadyTime::Now();
  std::erase_if(aside_, [&](const auto& each) { return each.second <= now; });
  const auto over = std::find_if(held_.begin(), held_.end(), [&](const LeafKey& each) {
    return each.received_day < first_day && !aside_.contains(each);
  });
  if (over == held_.end()) return false;
  const RollupMove move = {.leaf = *over, .leaves_merges_alone = false};
  STEPWELL_RETURN_IF_ERROR(
      leaves_.Ensure(connection, move.leaf.keep_class, move.leaf.received_day));
  std::int64_t moved = 0;
  const absl::Status status = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_ASSIGN_OR_RETURN(moved, MoveRollups(connection, move));
    return failpoint::Check("move_rollups_before_commit");
  });
  if (!status.ok() && !absl::IsAborted(status)) aside_[*over] = now + kAside;
  STEPWELL_RETURN_IF_ERROR(status);
  STEPWELL_FAILPOINT("move_rollups_after_commit");
  if (moved == 0) held_.erase(over);
  return true;
}

bool PgRollupRing::Holds(int segment) const {
  return std::any_of(held_.begin(), held_.end(), [&](const LeafKey& each) {
    return RollupSegmentOf(each.received_day) == segment;
  });
}

absl::Status PgRollupRing::Recycle(PgConnection& connection, std::int64_t owner_epoch,
                                   std::int32_t today) {
  STEPWELL_RETURN_IF_ERROR(Know(connection));
  for (int segment = 0; segment < kRollupSegments; ++segment) {
    const bool is_clean = segments_[static_cast<std::size_t>(segment)].is_clean;
    if (is_clean || segment == RollupSegmentOf(today) || Holds(segment)) continue;
    STEPWELL_RETURN_IF_ERROR(RecycleSegment(connection, owner_epoch, segment));
  }
  return absl::OkStatus();
}

absl::Status PgRollupRing::RecycleSegment(PgConnection& connection, std::int64_t owner_epoch,
                                          int segment) {
  Segment& state = segments_[static_cast<std::size_t>(segment)];
  if (state.emptied_xid == 0) {
    const SqlText pages =
        SqlCat({"select pg_relation_size(", SqlQuoted(RollupSegment("rollups", segment)),
                ") + pg_relation_size(", SqlQuoted(RollupSegment("rollup_ticks", segment)), ")"});
    STEPWELL_ASSIGN_OR_RETURN(const PgResult size, connection.Exec(pages));
    state.is_clean = size.Int64(0, 0) == 0;
    if (state.is_clean) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(const PgResult empty, connection.Exec(EmptySql(segment)));
    if (!empty.Bool(0, 0)) {
      Forget();  // there is more than was known
      return absl::OkStatus();
    }
    STEPWELL_ASSIGN_OR_RETURN(const PgResult xid, connection.Exec(sql::kReadCurrentXid));
    state.emptied_xid = xid.Int64(0, 0);
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult older,
      connection.Exec(sql::kCountOlderSnapshots, {absl::StrCat(state.emptied_xid)}));
  if (older.Int64(0, 0) > 0) return absl::OkStatus();
  bool truncated = false;
  const absl::Status status = InDdlTransaction(connection, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(
        SqlCat({"lock table ", TablesOf(segment), " in access exclusive mode"})));
    STEPWELL_ASSIGN_OR_RETURN(const PgResult empty, connection.Exec(EmptySql(segment)));
    truncated = empty.Bool(0, 0);
    if (!truncated) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(SqlCat({"truncate ", TablesOf(segment)})));
    return failpoint::Check("recycle_rollups_before_commit");
  });
  if (IsLockTimeout(status)) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(status);
  if (truncated) STEPWELL_FAILPOINT("recycle_rollups_after_commit");
  state = {.is_clean = truncated};
  return absl::OkStatus();
}

}  // namespace stepwell
