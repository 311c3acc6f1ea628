// The SQL of traces, by name. Locks are taken in the order that pg_sql.h tells, then trace_usage, then traces.
#pragma once

namespace stepwell::sql {

// Columns as TraceAt reads them.
#define STEPWELL_TRACE_COLUMNS                                                            \
  "trial_id, trace_no, state, format, rank, epoch, first_batch, last_batch, byte_count, " \
  "received_bytes, created_time, changed_time, writer, name, machine, sha256, reason"

// Held until the transaction ends: who deletes or archives the trial waits, or is seen. The row of masters is
// not: uploads beside each other would keep its owner from renewing it, and their own rows order them.
inline constexpr char kHoldTrialOfTraces[] = R"(
select archived, deleted_time is not null,
       coalesce((select epoch from stepwell.masters where slot = 0), $2)
from stepwell.trials where trial_id = $1 for key share of trials)";
inline constexpr char kFindWriterOfTrial[] =
    "select exists (select from stepwell.writers where trial_id = $1 and writer = $2)";

inline constexpr char kMakeTraceUsage[] =
    "insert into stepwell.trace_usage (trial_id) values ($1) on conflict do nothing";
inline constexpr char kLockTraceUsage[] =
    "select trace_count, byte_count from stepwell.trace_usage where trial_id = $1 for update";
// $2 numbers given, $3 bytes, $4 refused: what comes to them.
inline constexpr char kMoveTraceUsage[] = R"(
update stepwell.trace_usage
set trace_count = trace_count + $2, byte_count = byte_count + $3, refused_count = refused_count + $4
where trial_id = $1)";
inline constexpr char kReadTraceUsage[] =
    "select byte_count, refused_count from stepwell.trace_usage where trial_id = $1";

inline constexpr char kFindTraceByContent[] = "select " STEPWELL_TRACE_COLUMNS
                                              " from stepwell.traces where trial_id = $1 and "
                                              "sha256 = $2 and name = $3 and state <= 3";
inline constexpr char kFindTrace[] = "select " STEPWELL_TRACE_COLUMNS
                                     " from stepwell.traces where trial_id = $1 and trace_no = $2 "
                                     "and state <= 4";
inline constexpr char kLockTrace[] = "select " STEPWELL_TRACE_COLUMNS
                                     " from stepwell.traces where trial_id = $1 and trace_no = $2 "
                                     "and state <= 4 for update";
inline constexpr char kListTraces[] = "select " STEPWELL_TRACE_COLUMNS
                                      " from stepwell.traces where trial_id = $1 and trace_no > $2 "
                                      "and state <= 4 order by trace_no limit $3";
inline constexpr char kCountTraces[] = "select count(*) from stepwell.traces where trial_id = $1";
// Something that is no trace any more makes room for one.
inline constexpr char kDropOldestRecord[] = R"(
delete from stepwell.traces where trial_id = $1 and trace_no = (
  select min(trace_no) from stepwell.traces
  where trial_id = $1 and state in (3, 4) and part_count = 0))";
inline constexpr char kInsertTrace[] = R"(
insert into stepwell.traces
  (trial_id, trace_no, state, format, rank, epoch, first_batch, last_batch, byte_count, writer, name,
   machine, sha256, reason)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
returning )" STEPWELL_TRACE_COLUMNS;
// What was refused is taken, or refused again; its age counts from here.
inline constexpr char kTurnTrace[] =
    "update stepwell.traces set state = $3, reason = $4, created_time = now(), changed_time = "
    "now() "
    "where trial_id = $1 and trace_no = $2 returning " STEPWELL_TRACE_COLUMNS;

// $3 where the part begins, $4 its bytes. No row: the trace is elsewhere by now.
inline constexpr char kMoveTrace[] = R"(
update stepwell.traces
set received_bytes = received_bytes + $4, part_count = part_count + 1, changed_time = now(),
    state = case when received_bytes + $4 = byte_count then 2 else 1 end
where trial_id = $1 and trace_no = $2 and state = 1 and received_bytes = $3
returning changed_time)";
inline constexpr char kInsertTracePart[] =
    "insert into stepwell.trace_parts (trial_id, trace_no, part_no, bytes) values ($1, $2, $3, $4)";
inline constexpr char kReadTracePart[] =
    "select p.bytes from stepwell.trace_parts p join stepwell.traces t using (trial_id, trace_no) "
    "where p.trial_id = $1 and p.trace_no = $2 and p.part_no = $3 and t.state <= 2";

// --- what goes ---

// $3 state: 4 with a reason, or 5.
inline constexpr char kGiveUpTrace[] = R"(
update stepwell.traces
set state = $3, reason = $4, changed_time = now(), received_bytes = 0
where trial_id = $1 and trace_no = $2)";
// Who clears the same trace waits here, and sees what the other one left.
inline constexpr char kLockTraceToClear[] =
    "select 1 from stepwell.traces where trial_id = $1 and trace_no = $2 and state >= 4 for update";
// The last so many of a trace's parts. $3 how many.
inline constexpr char kDropTraceParts[] = R"(
with gone as (
  delete from stepwell.trace_parts
  where trial_id = $1 and trace_no = $2 and part_no in (
    select part_no from stepwell.trace_parts where trial_id = $1 and trace_no = $2
    order by part_no desc limit $3)
  returning 1
)
update stepwell.traces
set part_count = case when (select count(*) from gone) < $3 then 0
                      else greatest(part_count - (select count(*) from gone), 0) end
where trial_id = $1 and trace_no = $2
returning part_count, (select count(*) from gone))";
inline constexpr char kDropDeletedTrace[] =
    "delete from stepwell.traces where trial_id = $1 and trace_no = $2 and state = 5 "
    "and part_count = 0";
// Those that are to go; by an index that holds no others. $1 trial, or 0.
inline constexpr char kListTracesToClear[] = R"(
select trial_id, trace_no from stepwell.traces
where (state = 5 or (state >= 4 and part_count > 0)) and ($1 = 0 or trial_id = $1)
order by trial_id, trace_no limit 1000)";
// Nobody goes on with them. $1 seconds, $2 whether they have to lie in one of the projects $3.
inline constexpr char kListAbandonedTraces[] = R"(
select t.trial_id, t.trace_no, t.byte_count, t.created_time from stepwell.traces t
where t.state = 1 and t.changed_time < now() - make_interval(secs => $1)
  and (not $2 or exists (select from stepwell.trials r
                         join stepwell.projects p on p.project_id = r.project_id
                         where r.trial_id = t.trial_id and p.name = any($3)))
order by t.trial_id, t.trace_no limit 1000)";
// Trials that may be over a cap: $1 trial or 0, $2 project or 0, $3 the least age that is set somewhere or 0,
// $4 the least bytes, $5 whether they have to lie in one of the projects $6.
inline constexpr char kListTrialsWithTraces[] = R"(
select u.trial_id, t.project_id
from stepwell.trace_usage u
join stepwell.trials t on t.trial_id = u.trial_id
cross join lateral (
  select coalesce(extract(epoch from now() - min(k.created_time)), 0)::bigint as seconds
  from stepwell.traces k where k.trial_id = u.trial_id and k.state <= 2 and $3 > 0) o
where u.byte_count > 0 and t.deleted_time is null
  and ($1 = 0 or u.trial_id = $1) and ($2 = 0 or t.project_id = $2)
  and (u.byte_count > $4 or ($3 > 0 and o.seconds > $3))
  and (not $5 or t.project_id in (select project_id from stepwell.projects where name = any($6)))
order by u.trial_id)";
// Oldest first, with their ages in seconds; those under way go by their age alone.
inline constexpr char kListTracesByAge[] = R"(
select trace_no, byte_count, extract(epoch from now() - created_time)::bigint, state, created_time
from stepwell.traces where trial_id = $1 and state <= 2 order by created_time, trace_no)";
// What deleting a trial gives up at once.
inline constexpr char kGiveUpTracesOf[] =
    "update stepwell.traces set state = 5 where trial_id = $1 and state <> 5";
inline constexpr char kDropTraceUsage[] = "delete from stepwell.trace_usage where trial_id = $1";

}  // namespace stepwell::sql
