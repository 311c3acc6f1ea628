#include "storage/pg_recent_recycler.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_ddl.h"
#include "storage/pg_error.h"
#include "storage/pg_fold_sql.h"
#include "storage/pg_owner.h"
#include "storage/pg_row_copy.h"

namespace stepwell {
namespace {

// Rows moved in one round, of each of the two tables: some ten milliseconds.
constexpr int kMoveRowsMax = 2000;

SqlText Recent(int segment) { return SqlCat({"stepwell.recent_", SqlInteger(segment)}); }
SqlText RecentTicks(int segment) { return SqlCat({"stepwell.recent_ticks_", SqlInteger(segment)}); }

SqlText EmptySql(int segment) {
  return SqlCat({"select not exists (select from ", Recent(segment),
                 ") and not exists (select from ", RecentTicks(segment), ")"});
}

// Rows of deleted trials go nowhere: merges leave them out, so that they would travel round the ring. A burial
// (PgTrialSweeper) looks for a trial's rows once it is deleted, and does not come back. It misses none: their
// trials' rows are held FOR KEY SHARE until this commits, and said then whether they are deleted, also where
// the deletion committed after this statement began. Whoever deletes a trial holds its row FOR UPDATE first.
// So it waits for who is carrying its rows, and a burial sees them where they came; or it came first, and they are
// not carried. What a burial is taking is skipped: it takes rows in another order, and neither waits for the other
// in a circle. The rows may be held before their trials: whoever holds these FOR UPDATE touches no row of recent.
SqlText MoveSql(const SqlText& from, const SqlText& to, int to_segment, const SqlText& columns) {
  return SqlCat(
      {"with picked as materialized (select ctid as id, trial_id from ", from, " limit ",
       SqlInteger(kMoveRowsMax),
       " for update skip locked), held as materialized (select trial_id, deleted_time is not null "
       "as is_deleted from stepwell.trials where trial_id = any(array(select distinct trial_id "
       "from picked)) order by trial_id for key share), moved as (delete from ",
       from, " where ctid = any(array(select id from picked)) returning *) insert into ", to,
       " (segment, ", columns, ") select ", SqlInteger(to_segment), ", ", columns,
       " from moved where trial_id <> all(array(select trial_id from held where is_deleted))"});
}

}  // namespace

absl::Status PgRecentRecycler::Start(PgConnection& connection, Look look) {
  std::int64_t newest_fold = -1;
  for (int i = 0; i < RecentRing::kSegmentCount; ++i) {
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t fold_no, ReadSegment(connection, look, i));
    if (ring_.segment(i).is_damaged || fold_no <= newest_fold) continue;
    newest_fold = fold_no;
    ring_.set_current(i);
  }
  if (!ring_.segment(ring_.current()).is_damaged) return absl::OkStatus();
  const int next = ring_.next();
  if (next == ring_.current()) return absl::DataLossError("no segment of recent can be read");
  ring_.set_current(next);
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> PgRecentRecycler::ReadSegment(PgConnection& connection, Look look,
                                                           int i) {
  const SqlText read_ticks =
      SqlCat({"select coalesce(max(fold_no), -1), coalesce(min(received_time_us), 0) from ",
              RecentTicks(i)});
  const SqlText is_empty = look == Look::kWhole
                               ? SqlCat({"(select count(*) = 0 from ", Recent(i), ")"})
                               : SqlCat({"not exists (select from ", Recent(i), ")"});
  const SqlText read_rows =
      SqlCat({"select pg_relation_size(", SqlQuoted(Recent(i)), "), ", is_empty});
  RecentRing::Segment& segment = ring_.segment(i);
  segment = {};
  const auto ticks = connection.Exec(read_ticks);
  if (!ticks.ok()) {
    STEPWELL_RETURN_IF_ERROR(LeaveDamaged(i, ticks.status()));
    segment.ticks_damaged = true;
    return -1;
  }
  const std::int64_t newest_fold = ticks->Int64(0, 0);
  const auto rows = connection.Exec(read_rows);
  if (!rows.ok()) {
    STEPWELL_RETURN_IF_ERROR(LeaveDamaged(i, rows.status()));
    return newest_fold;
  }
  segment.bytes = rows->Int64(0, 0);
  segment.first_time_us = ticks->Int64(0, 1);
  segment.holds_rows = newest_fold >= 0 || !rows->Bool(0, 1);
  segment.is_clean = segment.bytes == 0 && !segment.holds_rows;
  return newest_fold;
}

absl::Status PgRecentRecycler::LeaveDamaged(int segment, const absl::Status& why) {
  if (!IsUnreadable(why)) return why;
  ring_.segment(segment).is_damaged = true;
  ring_.segment(segment).holds_rows = true;
  ring_.segment(segment).is_clean = false;
  log::Error("recent_segment_unreadable", {{"segment", segment}, {"reason", why.message()}});
  return absl::OkStatus();
}

absl::StatusOr<bool> PgRecentRecycler::IsEmpty(PgConnection& connection, int segment) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection.Exec(EmptySql(segment)));
  return row.Bool(0, 0);
}

// Asked of the database, not of those who take rows away: merges, deletions of trials on connections of their own,
// a master of before. The lock waits for whom of them has begun, and for a fold whose COMMIT is in doubt.
absl::Status PgRecentRecycler::NoteEmptied(PgConnection& connection, int segment) {
  std::uint64_t xid = 0;
  const absl::Status looked = InDdlTransaction(connection, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(
        SqlCat({"lock table ", Recent(segment), ", ", RecentTicks(segment), " in share mode"})));
    STEPWELL_ASSIGN_OR_RETURN(const bool is_empty, IsEmpty(connection, segment));
    if (!is_empty) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection.Exec(sql::kReadCurrentXid));
    xid = static_cast<std::uint64_t>(row.Int64(0, 0));
    return absl::OkStatus();
  });
  if (IsLockTimeout(looked)) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(looked);
  ring_.segment(segment).emptied_xid = xid;
  return absl::OkStatus();
}

absl::StatusOr<bool> PgRecentRecycler::SeenByOlderSnapshot(PgConnection& connection, int segment) {
  const std::uint64_t emptied_xid = ring_.segment(segment).emptied_xid;
  STEPWELL_ASSIGN_OR_RETURN(const PgResult older, connection.Exec(sql::kCountOlderSnapshots,
                                                                  {absl::StrCat(emptied_xid)}));
  return older.Int64(0, 0) > 0;
}

absl::Status PgRecentRecycler::TruncateIfUnseen(PgConnection& connection, std::int64_t owner_epoch,
                                                int segment) {
  if (ring_.segment(segment).emptied_xid == 0) {
    STEPWELL_RETURN_IF_ERROR(NoteEmptied(connection, segment));
    if (ring_.segment(segment).emptied_xid == 0) return absl::OkStatus();
  }
  STEPWELL_ASSIGN_OR_RETURN(const bool seen, SeenByOlderSnapshot(connection, segment));
  if (seen) return absl::OkStatus();
  const SqlText tables = SqlCat({Recent(segment), ", ", RecentTicks(segment)});
  bool truncated = false;
  const absl::Status status = InDdlTransaction(connection, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(
        connection.ExecScript(SqlCat({"lock table ", tables, " in access exclusive mode"})));
    STEPWELL_ASSIGN_OR_RETURN(truncated, IsEmpty(connection, segment));
    if (!truncated) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(SqlCat({"truncate ", tables})));
    return failpoint::Check("recycle_recent_before_commit");
  });
  if (IsLockTimeout(status)) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(status);
  if (truncated) STEPWELL_FAILPOINT("recycle_recent_after_commit");
  if (truncated) ring_.segment(segment) = {};
  return absl::OkStatus();
}

absl::Status PgRecentRecycler::Recycle(PgConnection& connection, std::int64_t owner_epoch,
                                       std::int64_t now_us) {
  for (int i = 0; i < RecentRing::kSegmentCount; ++i) {
    const RecentRing::Segment& segment = ring_.segment(i);
    if (i == ring_.current() || segment.is_clean || segment.is_damaged) continue;
    STEPWELL_ASSIGN_OR_RETURN(const bool is_empty, IsEmpty(connection, i));
    ring_.segment(i).holds_rows = !is_empty;
    if (is_empty) STEPWELL_RETURN_IF_ERROR(TruncateIfUnseen(connection, owner_epoch, i));
  }
  if (!ring_.IsFull(now_us)) return absl::OkStatus();
  return Advance(connection, owner_epoch);
}

absl::Status PgRecentRecycler::Advance(PgConnection& connection, std::int64_t owner_epoch) {
  const int next = ring_.next();
  if (next == ring_.current()) return absl::OkStatus();
  if (ring_.segment(next).holds_rows) return MoveRows(connection, owner_epoch, next);
  if (!ring_.segment(next).is_clean) {
    // Some old snapshot (a backup, a forgotten psql) forbids TRUNCATE; dead rows go as they may.
    // Until that is done the current segment grows.
    if (!IsVacuumed(next)) return absl::OkStatus();
    ring_.segment(next).bytes = 0;
  }
  ring_.set_current(next);
  return absl::OkStatus();
}

bool PgRecentRecycler::IsVacuumed(int segment) {
  if (vacuum_.busy()) return false;
  if (vacuumed_segment_ != segment) {
    vacuumed_segment_ = segment;
    vacuum_.Start({Recent(segment), RecentTicks(segment)});
    return false;
  }
  vacuumed_segment_ = -1;
  const absl::Status result = vacuum_.result();
  if (!result.ok()) log::Warning("vacuum_recent_failed", {{"status", result.ToString()}});
  return result.ok();
}

absl::Status PgRecentRecycler::MoveRows(PgConnection& connection, std::int64_t owner_epoch,
                                        int from) {
  const int to = ring_.current();
  const SqlText move_rows =
      MoveSql(Recent(from), Recent(to), to, SqlCat({"fold_no, ", kMetricsColumnList}));
  const SqlText move_ticks =
      MoveSql(RecentTicks(from), RecentTicks(to), to,
              SqlCat({"fold_no, received_time_us, series_nos, ", kTicksColumnList}));
  return connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection, owner_epoch));
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(move_rows));
    STEPWELL_RETURN_IF_ERROR(connection.ExecScript(move_ticks));
    return failpoint::Check("move_recent_before_commit");
  });
}

}  // namespace stepwell
