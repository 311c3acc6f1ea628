// The SQL of folds and merges, by name. Locks are taken in the order that pg_sql.h tells.
#pragma once

namespace stepwell::sql {

inline constexpr char kNextFoldNo[] = "select nextval('stepwell.fold_numbers')";
inline constexpr char kNextFoldNos[] = R"(
select nextval('stepwell.fold_numbers') from generate_series(1, $1::integer))";

// $1 trials, $2 the highest number that is known already, of each.
inline constexpr char kReadSeriesGroups[] = R"(
select s.trial_id, s.series_no, s.metric_group
from unnest($1::bigint[], $2::integer[]) as k (trial_id, series_no)
join stepwell.series s on s.trial_id = k.trial_id and s.series_no > k.series_no
order by s.trial_id, s.series_no)";

// The rows are locked in order: an UPDATE alone locks them in the order of its plan, and two transactions
// could then wait for each other. What is folded is committed: as the row is written anyway, it takes what
// progress this statement sees, so that nobody finds a writer folded further than committed.
inline constexpr char kMoveFolded[] = R"(
with wanted as (
  select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[])
    as t (trial_id, writer_no, from_sequence, to_sequence)
), locked as (
  select w.trial_id, w.writer_no
  from wanted t join stepwell.writers w
    on w.trial_id = t.trial_id and w.writer_no = t.writer_no
  order by w.trial_id, w.writer_no
  for no key update of w
)
update stepwell.writers w
set folded_sequence = t.to_sequence,
    committed_sequence = greatest(w.committed_sequence, n.committed_sequence),
    last_crc32c = case when n.committed_sequence > w.committed_sequence then n.last_crc32c
                       else w.last_crc32c end
from wanted t join locked l on l.trial_id = t.trial_id and l.writer_no = t.writer_no
left join lateral (
  select p.committed_sequence, p.last_crc32c from stepwell.progress p
  where p.trial_id = t.trial_id and p.writer_no = t.writer_no
  order by p.committed_sequence desc limit 1
) n on true
where w.trial_id = t.trial_id and w.writer_no = t.writer_no
  and w.folded_sequence = t.from_sequence
  and greatest(w.committed_sequence, n.committed_sequence) >= t.to_sequence)";

// Days come as days since 1970. A line that another release began stays without has_rollups. Where the leaf's samples
// were given up, a line begins to count what comes behind that: what it said until then went with the mark. Whoever
// adds samples has written into the leaf before, so that no mark comes between (PgLeafSweeper).
inline constexpr char kMoveUsage[] = R"(
insert into stepwell.usage_lines as u
  (trial_id, received_day, keep_class, metric_group, row_count, sample_count, byte_count,
   rollup_byte_count, first_time_us, last_time_us, removed_sample_count, has_rollups, after_sweep)
select t.trial_id, date '1970-01-01' + t.day, t.keep_class, t.metric_group, t.row_count,
       t.sample_count, t.byte_count, t.rollup_byte_count, t.first_time_us, t.last_time_us, t.removed_sample_count, true,
       coalesce((select t.trial_id <= s.samples_through from stepwell.swept_leaves s
                 where s.keep_class = t.keep_class and s.received_day = date '1970-01-01' + t.day), false)
from unnest($1::bigint[], $2::integer[], $3::smallint[], $4::text[], $5::bigint[], $6::bigint[],
            $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
  as t (trial_id, day, keep_class, metric_group, row_count, sample_count, byte_count,
        rollup_byte_count, first_time_us, last_time_us, removed_sample_count)
order by 1, 2, 3, 4
on conflict (trial_id, received_day, keep_class, metric_group) do update
set row_count = case when excluded.after_sweep > u.after_sweep then 0 else u.row_count end + excluded.row_count,
    sample_count =
      case when excluded.after_sweep > u.after_sweep then 0 else u.sample_count end + excluded.sample_count,
    byte_count = case when excluded.after_sweep > u.after_sweep then 0 else u.byte_count end + excluded.byte_count,
    rollup_byte_count = u.rollup_byte_count + excluded.rollup_byte_count,
    removed_sample_count = u.removed_sample_count + excluded.removed_sample_count
      + case when excluded.after_sweep > u.after_sweep then u.sample_count else 0 end,
    first_time_us = least(u.first_time_us, excluded.first_time_us),
    last_time_us = greatest(u.last_time_us, excluded.last_time_us),
    after_sweep = u.after_sweep or excluded.after_sweep)";

// $1: the name of a leaf.
inline constexpr char kIsAttached[] = R"(
select exists (select from pg_catalog.pg_class c
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
               where n.nspname = 'stepwell' and c.relname = $1 and c.relispartition))";

// What may be merged, oldest first. $1 greatest fold_no, $2 ticks of a ripe stretch, $3 received
// before this = of ripe age, $4 ticks that a slow one must have then, $5 received before this =
// ripe even if slow, $6 days before this one get no more samples, $7 limit, $8 to $11 trials, writers, tick
// groups and days since 1970 of stretches that are left alone: before the limit, which they would fill;
// $12 segments that can be read as a whole.
inline constexpr char kPickRipe[] = R"(
select r.trial_id, r.writer_no, r.tick_group, r.received_day, t.owner_epoch
from (select trial_id, writer_no, tick_group, received_day, sum(tick_count) as tick_count,
             min(received_time_us) as received_time_us
      from stepwell.recent_ticks where segment = any($12::smallint[]) and fold_no <= $1
      group by 1, 2, 3, 4) r
join stepwell.trials t on t.trial_id = r.trial_id and t.deleted_time is null
left join stepwell.writers w on w.trial_id = r.trial_id and w.writer_no = r.writer_no
where (r.tick_count >= $2
       or (r.received_time_us <= $3 and r.tick_count >= $4)
       or r.received_time_us <= $5
       or r.received_day < $6
       or w.state is distinct from 1)
  and (r.trial_id, r.writer_no, r.tick_group, r.received_day) not in (
    select a.trial_id, a.writer_no, a.tick_group, date '1970-01-01' + a.day
    from unnest($8::bigint[], $9::integer[], $10::integer[], $11::integer[])
      as a (trial_id, writer_no, tick_group, day))
order by r.received_time_us
limit $7)";

// $1 trial, $2 writer, $3 tick group, $4 received day, $5 greatest fold_no, $6 limit; the columns follow
// "select", see kTicksColumnList.
inline constexpr char kFromRecentTicks[] = R"(
from stepwell.recent_ticks
where trial_id = $1 and writer_no = $2 and tick_group = $3 and received_day = $4
  and fold_no <= $5
order by tick_no limit $6)";
// $1 trial, $2 series, $3 numbers of ticks, $4 and $5 times of these ticks: by the index, so that not all that the series
// has in recent is looked through for the oldest of it.
inline constexpr char kFromRecent[] = R"(
from stepwell.recent
where trial_id = $1 and series_no = any($2) and tick_no = any($3) and first_time_us between $4 and $5
order by tick_no, series_no)";
inline constexpr char kDeleteRecent[] = R"(
delete from stepwell.recent
where trial_id = $1 and series_no = any($2) and tick_no = any($3) and first_time_us between $4 and $5)";
inline constexpr char kDeleteRecentTicks[] = R"(
delete from stepwell.recent_ticks
where trial_id = $1 and writer_no = $2 and tick_no = any($3))";

inline constexpr char kReadCurrentXid[] = "select pg_current_xact_id()::text::bigint";
// Snapshots that may still see what transaction $1 took away, and transactions of others that we may not
// look into: their locks are shown to everybody, and who has no transaction has no snapshot.
inline constexpr char kCountOlderSnapshots[] = R"(
select (select count(*) from pg_catalog.pg_stat_activity a
        where a.pid <> pg_backend_pid()
          and (a.datid is null or a.datname = current_database())
          and (case when a.backend_xmin is not null
                    then age(a.backend_xmin) >= age($1::text::xid8::xid)
                    else a.usesysid <> (select oid from pg_catalog.pg_roles
                                        where rolname = current_user)
                         and not pg_has_role(current_user, 'pg_read_all_stats', 'usage')
                         and a.pid in (select l.pid from pg_catalog.pg_locks l
                                       where l.locktype = 'virtualxid' and l.granted)
               end))
     + (select count(*) from pg_catalog.pg_replication_slots s
        where s.xmin is not null and age(s.xmin) >= age($1::text::xid8::xid)))";

}  // namespace stepwell::sql
