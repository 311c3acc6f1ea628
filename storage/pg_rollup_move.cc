#include "storage/pg_rollup_move.h"

#include "base/status_macros.h"
#include "storage/pg_param.h"
#include "storage/pg_sweeper_sql.h"
#include "storage/rollup_ring.h"

namespace stepwell {
namespace {

// $1 class, $2 day, $3 trial or 0, $4 how many rows: grids are taken until they hold as many. Rows grid by grid, by the index, however few PostgreSQL believes
// there to be.
SqlText MoveSql(int segment, bool leaves_merges_alone) {
  const SqlText grids = RollupSegment("rollup_ticks", segment);
  const SqlText rows = RollupSegment("rollups", segment);
  return SqlCat(
      {"with picked as (select p.id from (select t.id, sum(n.held) over (order by t.id) - n.held "
       "as "
       "held_before from (select t.ctid as id, t.keep_class, t.trial_id, t.writer_no, t.tick_no, "
       "t.step_seconds from ",
       grids, " t where t.keep_class = $1 and t.received_day = $2 and ($3 = 0 or t.trial_id = $3)",
       leaves_merges_alone ? SqlPiece(" and " STEPWELL_ROLLUPS_ARE_MADE) : SqlPiece(""),
       " limit $4) t cross join lateral (select count(*) as held from ", rows,
       " r where r.trial_id = t.trial_id and r.writer_no = t.writer_no and r.tick_no = t.tick_no "
       "and r.step_seconds = t.step_seconds and r.keep_class = t.keep_class) n) p "
       "where p.held_before < $4), grids as (delete from ",
       grids, " where ctid = any(array(select id from picked)) returning *), rows as (delete from ",
       rows,
       " where ctid = any(array(select r.id from grids g cross join lateral (select r.ctid as id "
       "from ",
       rows,
       " r where r.trial_id = g.trial_id and r.writer_no = g.writer_no and r.tick_no = g.tick_no "
       "and r.step_seconds = g.step_seconds and r.keep_class = g.keep_class offset 0) r)) "
       "returning *), moved as (insert into stepwell.rollups select * from rows), "
       "put as (insert into stepwell.rollup_ticks select * from grids returning 1) "
       "select count(*) from put"});
}

}  // namespace

absl::StatusOr<std::int64_t> MoveRollups(PgConnection& connection, const RollupMove& move) {
  const int segment = RollupSegmentOf(move.leaf.received_day);
  STEPWELL_ASSIGN_OR_RETURN(const PgResult moved,
                            connection.Exec(MoveSql(segment, move.leaves_merges_alone),
                                            {move.leaf.keep_class, PgDate{move.leaf.received_day},
                                             Value(move.trial_id), move.rows_max}));
  return moved.Int64(0, 0);
}

absl::StatusOr<bool> RollupsWait(PgConnection& connection, const LeafKey& leaf) {
  const SqlText statement =
      SqlCat({"select exists (select from ",
              RollupSegment("rollup_ticks", RollupSegmentOf(leaf.received_day)),
              " where keep_class = $1 and received_day = $2)"});
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult row, connection.Exec(statement, {leaf.keep_class, PgDate{leaf.received_day}}));
  return row.Bool(0, 0);
}

}  // namespace stepwell
