// The SQL of sweeps, by name. Where a statement names leaves, they are pasted in: names of ours, made by
// LeafName.
#pragma once

namespace stepwell::sql {

// --- leaves ---

inline constexpr char kListLeaves[] = R"(
select c.relname::text, coalesce(pg_relation_size(c.oid), 0)
from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
where i.inhparent in ('stepwell.metrics'::regclass, 'stepwell.ticks'::regclass,
                      'stepwell.rollups'::regclass, 'stepwell.rollup_ticks'::regclass))";
inline constexpr char kReadSweptLeaves[] = R"(
select keep_class, received_day, rollups_too, emptied, ledger_xid from stepwell.swept_leaves
order by keep_class, received_day)";

// The next lines of one leaf that its mark has not passed. $1 class, $2 day, $3 limit.
inline constexpr char kReadLinesToMark[] = R"(
select u.trial_id, u.metric_group, u.sample_count, u.byte_count, 0::bigint, u.first_time_us, u.last_time_us
from stepwell.usage_lines u
where u.keep_class = $1 and u.received_day = $2 and not u.after_sweep
  and u.trial_id > coalesce((select s.samples_through from stepwell.swept_leaves s
                             where s.keep_class = $1 and s.received_day = $2), 0)
order by u.trial_id limit $3)";
// The next lines of one leaf that a mark does not tell of: those behind it that say again that samples are there, and
// those of trial $4 (0 = none, -1 = all). In the same form, rollups stay. $1 class, $2 day, $3 limit. As many rows
// as $3 were looked at: there may be more.
inline constexpr char kGiveUpSamples[] = R"(
with line as (
  select trial_id, metric_group, sample_count, byte_count, first_time_us, last_time_us
  from stepwell.usage_lines
  where keep_class = $1 and received_day = $2
    and case when after_sweep then row_count <> 0 or sample_count <> 0 or byte_count <> 0
        else $4::bigint in (-1, trial_id) end
  order by trial_id, metric_group limit $3 for no key update
)
update stepwell.usage_lines u
set row_count = 0, sample_count = 0, byte_count = 0, after_sweep = true,
    removed_sample_count = u.removed_sample_count + line.sample_count
from line
where u.trial_id = line.trial_id and u.received_day = $2 and u.keep_class = $1
  and u.metric_group = line.metric_group
returning u.trial_id, u.metric_group, line.sample_count, line.byte_count, 0::bigint,
          line.first_time_us, line.last_time_us, (select count(*) from line))";
// The next lines of one leaf, whatever they say; in the same form. Of trials whose lines are all among those looked
// at, but for one that alone has more than so many. No lock is written before: what a merge has added until the line
// is held is deleted, and told, with it; what it adds later begins a line of its own.
inline constexpr char kGiveUpLines[] = R"(
with line as materialized (
  select trial_id, metric_group from stepwell.usage_lines
  where keep_class = $1 and received_day = $2
  order by trial_id, metric_group limit $3
), looked_at as (
  select count(*) as line_count, min(trial_id) as first_trial_id, max(trial_id) as last_trial_id,
         coalesce((select samples_through from stepwell.swept_leaves
                   where keep_class = $1 and received_day = $2), 0) as samples_through
  from line
)
delete from stepwell.usage_lines u using line l, looked_at a
where u.trial_id = l.trial_id and u.received_day = $2 and u.keep_class = $1
  and u.metric_group = l.metric_group
  and (a.line_count < $3 or l.trial_id < a.last_trial_id or a.first_trial_id = a.last_trial_id)
returning u.trial_id, u.metric_group,
          case when u.after_sweep or u.trial_id > a.samples_through then u.sample_count else 0 end,
          case when u.after_sweep or u.trial_id > a.samples_through then u.byte_count else 0 end,
          u.rollup_byte_count, u.first_time_us, u.last_time_us, a.line_count)";
// $1 class, $2 day, $3 whether rollups are given up, too, $4 how far the mark of samples moves (0 = it does not).
inline constexpr char kNoteGivenUp[] = R"(
insert into stepwell.swept_leaves as s (keep_class, received_day, rollups_too, ledger_xid, samples_through)
values ($1, $2, $3, pg_current_xact_id()::text::bigint, $4)
on conflict (keep_class, received_day) do update
set rollups_too = s.rollups_too or excluded.rollups_too, ledger_xid = excluded.ledger_xid,
    samples_through = greatest(s.samples_through, excluded.samples_through),
    emptied = false, swept_time = now())";
// Whether the ledger says that rows are in the leaf: of samples, of rollups.
inline constexpr char kLeafHasLines[] = R"(
select coalesce(bool_or(row_count <> 0 or sample_count <> 0 or byte_count <> 0), false),
       coalesce(bool_or(rollup_byte_count <> 0), false)
from stepwell.usage where keep_class = $1 and received_day = $2)";
// $1 day.
inline constexpr char kDayHasRecentTicks[] =
    "select exists (select from stepwell.recent_ticks where received_day = $1)";
inline constexpr char kFindTables[] = R"(
select i from unnest($1::text[]) with ordinality as t (name, i)
where to_regclass(name) is not null order by i)";
inline constexpr char kNoteEmptied[] = R"(
update stepwell.swept_leaves set emptied = true where keep_class = $1 and received_day = $2)";
// When a leaf is dropped: lines that say nothing any more.
inline constexpr char kDropLines[] = R"(
delete from stepwell.usage_lines u
where u.keep_class = $1 and u.received_day = $2 and u.rollup_byte_count = 0
  and (u.row_count = 0 and u.sample_count = 0 and u.byte_count = 0
       or not u.after_sweep
          and u.trial_id <= (select s.samples_through from stepwell.swept_leaves s
                             where s.keep_class = $1 and s.received_day = $2)))";
// But for a mark that some line still needs: without it that would say again what was given up.
inline constexpr char kForgetSwept[] = R"(
delete from stepwell.swept_leaves s
where s.keep_class = $1 and s.received_day = $2 and s.emptied
  and not exists (select from stepwell.usage_lines u
                  where u.keep_class = $1 and u.received_day = $2 and not u.after_sweep
                    and u.trial_id <= s.samples_through))";

// --- what went ---

// One row of gaps per trial, group and cap, which grows. $1 trials, $2 groups, $3 sample counts, $4 and
// $5 first and last times, $6 the cap's name. Nothing is noted of a deleted trial. 11: GapCause CAP.
#define STEPWELL_NOTE_CAP_GAPS(gone)                                                               \
  "with lost as ("                                                                                 \
  "  select * from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) "    \
  "    as t (trial_id, metric_group, sample_count, first_time_us, last_time_us)"                   \
  "), " gone                                                                                       \
  ", extended as ("                                                                                \
  "  update stepwell.gaps g "                                                                      \
  "  set sample_count = g.sample_count + t.sample_count, "                                         \
  "      first_time_us = least(g.first_time_us, t.first_time_us), "                                \
  "      last_time_us = greatest(g.last_time_us, t.last_time_us) "                                 \
  "  from gone t "                                                                                 \
  "  where g.trial_id = t.trial_id and g.writer_no = 0 and g.cause = 11 "                          \
  "    and g.gap_no = (select min(k.gap_no) from stepwell.gaps k "                                 \
  "                    where k.trial_id = t.trial_id and k.writer_no = 0 and k.cause = 11 "        \
  "                      and k.metric_group = t.metric_group and k.reason = $6) "                  \
  "  returning g.trial_id, g.metric_group"                                                         \
  ") "                                                                                             \
  "insert into stepwell.gaps "                                                                     \
  "  (trial_id, writer_no, cause, metric_group, sample_count, first_time_us, last_time_us, "       \
  "   first_sequence, last_sequence, reason) "                                                     \
  "select t.trial_id, 0, 11, t.metric_group, t.sample_count, t.first_time_us, t.last_time_us, 0, " \
  "0, $6 "                                                                                         \
  "from gone t join stepwell.trials o on o.trial_id = t.trial_id and o.deleted_time is null "      \
  "where not exists (select from extended e "                                                      \
  "                  where e.trial_id = t.trial_id and e.metric_group = t.metric_group)"
inline constexpr char kNoteCapGaps[] = STEPWELL_NOTE_CAP_GAPS("gone as (select * from lost)");
// Likewise of one leaf, $7 its class and $8 its day: where all groups of a trial went that the ledger knows, and none
// has samples of that day elsewhere, one row for all of them, without a group. Its times are of all of them
// together, and of what the row had before: where they would reach more than a minute further among samples that
// a group still has than its own do (another's clock was absurd; it kept some days for longer), each has its own.
inline constexpr char kNoteLeafGaps[] = STEPWELL_NOTE_CAP_GAPS(
    "of_trial as ("
    "  select trial_id, sum(sample_count)::bigint as sample_count,"
    "         min(first_time_us) as first_time_us, max(last_time_us) as last_time_us"
    "  from lost group by trial_id having count(*) > 1"
    "), reach as ("  // from the row that it has, which grows over all that lies between
    "  select t.trial_id, least(t.first_time_us, g.last_time_us) as first_of_all_us,"
    "         greatest(t.last_time_us, g.first_time_us) as last_of_all_us"
    "  from of_trial t left join lateral ("
    "    select first_time_us, last_time_us from stepwell.gaps"
    "    where trial_id = t.trial_id and writer_no = 0 and cause = 11 and metric_group = ''"
    "      and reason = $6 order by gap_no limit 1) g on true"
    "), line as materialized ("  // of these trials, by its index
    "  select t.*, u.*"
    "  from reach t cross join lateral ("
    "    select metric_group, received_day, keep_class, sample_count, first_time_us, last_time_us"
    "    from stepwell.usage where trial_id = t.trial_id offset 0) u"
    "), apart as ("
    "  select u.trial_id from line u"
    "  left join lost l on l.trial_id = u.trial_id and l.metric_group = u.metric_group"
    "  where l.trial_id is null or (u.sample_count > 0 and ("
    "    (u.received_day = $8 and u.keep_class <> $7)"
    "    or (u.first_of_all_us < l.first_time_us - 60000000"
    "        and u.first_time_us < l.first_time_us - 60000000"
    "        and u.last_time_us >= u.first_of_all_us)"
    "    or (u.last_of_all_us > l.last_time_us + 60000000"
    "        and u.last_time_us > l.last_time_us + 60000000"
    "        and u.first_time_us <= u.last_of_all_us)))"
    "), gone as ("
    "  select trial_id, '' as metric_group, sample_count, first_time_us, last_time_us"
    "  from of_trial where trial_id not in (select trial_id from apart)"
    "  union all select * from lost where trial_id in (select trial_id from apart)"
    "    or trial_id not in (select trial_id from of_trial)"
    ")");

// --- bounds of bytes and samples ---

// Sums of the ledger by trial and group.
#define STEPWELL_SUM_LEDGER(condition)                                             \
  "select u.trial_id, t.project_id, u.metric_group, sum(u.sample_count)::bigint, " \
  "sum(u.byte_count + u.rollup_byte_count)::bigint "                               \
  "from stepwell.usage u join stepwell.trials t on t.trial_id = u.trial_id "       \
  "where t.deleted_time is null and " condition " group by 1, 2, 3 order by 1, 3"
// $1 trial or 0, $2 project or 0.
inline constexpr char kSumLedger[] =
    STEPWELL_SUM_LEDGER("($1 = 0 or t.trial_id = $1) and ($2 = 0 or t.project_id = $2)");
// $1 trials: those that may have grown. It reads no more of the ledger than theirs.
inline constexpr char kSumLedgerOf[] = STEPWELL_SUM_LEDGER("u.trial_id = any($1)");
// Trials that may grow.
inline constexpr char kListGrowing[] = R"(
select trial_id from stepwell.trials where deleted_time is null and state in (1, 4)
union select trial_id from stepwell.recent_ticks)";
// Where stepwell.recent_ticks cannot be read as a whole.
inline constexpr char kListNotDeleted[] =
    "select trial_id from stepwell.trials where deleted_time is null";
// Changes with every change of caps, but for a place that was cleared as another was set.
inline constexpr char kReadCapsVersion[] =
    "select count(*) || ' ' || coalesce(max(set_time)::text, '') from stepwell.caps";

// $1 trial, $2 group or ''.
inline constexpr char kListSeriesOf[] = R"(
select series_no from stepwell.series
where trial_id = $1 and ($2 = '' or metric_group = $2) order by series_no)";
// Leaves that hold merged rows or rollups, oldest first. $1 trial, $2 group or ''. Of one that waits to be
// emptied no samples: its rows were noted as gaps already, and lie there beside those that came since.
inline constexpr char kListLeavesOf[] = R"(
select u.received_day, u.keep_class,
       sum(case when s.keep_class is null then u.row_count else 0 end)::bigint,
       sum(case when s.keep_class is null then u.byte_count else 0 end)::bigint,
       sum(case when s.rollups_too then 0 else u.rollup_byte_count end)::bigint
from stepwell.usage u
left join stepwell.swept_leaves s
  on s.keep_class = u.keep_class and s.received_day = u.received_day and not s.emptied
where u.trial_id = $1 and ($2 = '' or u.metric_group = $2)
  and (u.row_count > 0 or u.byte_count > 0 or u.rollup_byte_count > 0)
group by 1, 2 order by u.received_day, min(u.first_time_us))";
// $1 trial, $2 group or ''.
inline constexpr char kCountRecent[] = R"(
select (select coalesce(sum(row_count), 0)::bigint from stepwell.usage
        where trial_id = $1 and ($2 = '' or metric_group = $2)),
       (select count(*) from stepwell.recent r
        where r.trial_id = $1
          and ($2 = '' or r.series_no in (select s.series_no from stepwell.series s
                                          where s.trial_id = $1 and s.metric_group = $2))))";

// A merge works on a stretch in slices, and its recent rows go with the last of them: until then more
// rows may come to the ticks that it has written. `t` is a row of ticks.
#define STEPWELL_MERGE_IS_OVER                                                     \
  "not exists (select from stepwell.recent_ticks r where r.trial_id = t.trial_id " \
  "and r.writer_no = t.writer_no and r.tick_group = t.tick_group "                 \
  "and r.received_day = t.received_day and r.tick_no < t.tick_no)"
// Rollups have no tick group: there all of the writer's must be merged.
#define STEPWELL_ROLLUPS_ARE_MADE                                                  \
  "not exists (select from stepwell.recent_ticks r where r.trial_id = t.trial_id " \
  "and r.writer_no = t.writer_no and r.received_day = t.received_day "             \
  "and r.tick_no < t.tick_no)"

// Bytes of a row as it was copied: what record_send gives, without the types of its columns. Columns of
// before their migration were not copied.
#define STEPWELL_METRICS_BYTES "(octet_length(record_send(m)) - 2 - 4 * 27)"
#define STEPWELL_TICKS_BYTES \
  "(octet_length(record_send(t)) - 2 - 4 * 28 - case when t.series_nos is null then 4 else 0 end)"
#define STEPWELL_ROLLUPS_BYTES "(octet_length(record_send(m)) - 2 - 4 * 76)"
#define STEPWELL_ROLLUP_TICKS_BYTES               \
  "(octet_length(record_send(t)) - 2 - 4 * 50 - " \
  "case when t.first_series_no is null then 4 else 0 end)"

// --- what vanished ---

// $1, $2 and $3: the place before, $4 trial or 0, $5 limit.
inline constexpr char kListLinesToAudit[] = R"(
select distinct u.trial_id, u.received_day, u.keep_class
from stepwell.usage u join stepwell.trials t on t.trial_id = u.trial_id and t.deleted_time is null
where (u.trial_id, u.received_day, u.keep_class) > ($1, $2, $3) and ($4 = 0 or u.trial_id = $4)
  and u.sample_count > 0
order by 1, 2, 3 limit $5)";

// Lines of trial $1, class $2 and day $3 that say more than their rows do, and by how much.
#define STEPWELL_VANISHED                                                                        \
  "with held as ("                                                                               \
  "  select s.metric_group, sum(r.sample_count)::bigint as sample_count, count(*) as row_count " \
  "  from (select series_no, sample_count from stepwell.metrics "                                \
  "        where trial_id = $1 and keep_class = $2 and received_day = $3 "                       \
  "        union all select series_no, sample_count from stepwell.recent "                       \
  "        where trial_id = $1 and keep_class = $2 and received_day = $3) r "                    \
  "  join stepwell.series s on s.trial_id = $1 and s.series_no = r.series_no group by 1"         \
  "), lacking as ("                                                                              \
  "  select u.metric_group, u.sample_count - coalesce(h.sample_count, 0) as sample_count, "      \
  "         greatest(u.row_count - coalesce(h.row_count, 0), 0) as row_count "                   \
  "  from stepwell.usage u left join held h on h.metric_group = u.metric_group "                 \
  "  where u.trial_id = $1 and u.keep_class = $2 and u.received_day = $3 "                       \
  "    and u.sample_count > coalesce(h.sample_count, 0)"                                         \
  ") "
// In the order in which folds and merges write them.
inline constexpr char kHoldLines[] = R"(
select 1 from stepwell.usage_lines where trial_id = $1 and keep_class = $2 and received_day = $3
order by metric_group for no key update)";
inline constexpr char kFindVanished[] = STEPWELL_VANISHED "select metric_group from lacking";
// Takes that off the lines, which may have grown meanwhile, and notes it as a gap, of the times of the
// line: when the samples were is not known any more. Their bytes stay in the ledger. 13: GapCause RESTORED.
inline constexpr char kNoteVanished[] = STEPWELL_VANISHED R"(, taken as (
  update stepwell.usage_lines u
  set sample_count = u.sample_count - l.sample_count, row_count = greatest(u.row_count - l.row_count, 0)
  from lacking l
  where u.trial_id = $1 and u.keep_class = $2 and u.received_day = $3
    and u.metric_group = l.metric_group
  returning u.metric_group, l.sample_count, u.first_time_us, u.last_time_us
), noted as (
  insert into stepwell.gaps
    (trial_id, writer_no, cause, metric_group, sample_count, first_time_us, last_time_us,
     first_sequence, last_sequence, reason)
  select $1, 0, 13, metric_group, sample_count, first_time_us, last_time_us, 0, 0,
         'rows vanished from the database' from taken
)
select metric_group, sample_count from taken)";

// --- deleted trials ---

// Tombstones whose rows are not all gone: attempts go last.
inline constexpr char kListBuried[] = R"(
select trial_id from stepwell.trials
where deleted_time is not null and attempt_count > 0 order by deleted_time, trial_id limit 100)";
// Leaves that may hold rows of trial $1, and whether it has lines there: of those that were given up as a whole
// and wait to be emptied it may have none any more.
inline constexpr char kListLeavesOfBuried[] = R"(
select keep_class, received_day, bool_or(has_lines)
from (select keep_class, received_day, true as has_lines from stepwell.usage_lines where trial_id = $1
      union all
      select keep_class, received_day, false from stepwell.swept_leaves
      where rollups_too and not emptied) l
group by 1, 2 order by 1, 2)";
// Where the leaf was given up before and its rows came later, with a line, snapshots of before this see them: it is
// emptied no sooner than those of now are gone.
inline constexpr char kDropLinesOfBuried[] = R"(
with dropped as (
  delete from stepwell.usage_lines where trial_id = $1 and received_day = $2 and keep_class = $3
  returning 1
)
update stepwell.swept_leaves set ledger_xid = pg_current_xact_id()::text::bigint
where received_day = $2 and keep_class = $3 and not emptied and exists (select from dropped))";
// Everything else that is small. Caps may have been set while it was deleted.
inline constexpr char kDropCapsOfBuried[] =
    "delete from stepwell.caps where place = 2 and place_id = $1";
inline constexpr char kEndBurial[] =
    "update stepwell.trials set attempt_count = 0, series_count = 0 where trial_id = $1";

// --- previews ---

// The next trials. $1 after, $2 trial or 0, $3 project or 0, $4 whether they have to lie in one of the projects $5.
inline constexpr char kListTrialsToPreview[] = R"(
select trial_id, project_id from stepwell.trials
where trial_id > $1 and deleted_time is null and ($2 = 0 or trial_id = $2)
  and ($3 = 0 or project_id = $3)
  and (not $4 or project_id in (select project_id from stepwell.projects where name = any($5)))
order by trial_id limit 200)";
inline constexpr char kReadLinesToPreview[] = R"(
select trial_id, received_day, keep_class, metric_group, sample_count, byte_count,
       rollup_byte_count, first_time_us, last_time_us
from stepwell.usage
where trial_id = any($1) and (sample_count > 0 or byte_count > 0 or rollup_byte_count > 0)
order by trial_id, received_day, first_time_us)";

}  // namespace stepwell::sql
