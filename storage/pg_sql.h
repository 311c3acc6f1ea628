// The SQL of ingest, by name. Values are bound; nothing is pasted in but segment numbers of ours.
//
// Order of locks, everywhere: masters, progress_book, trials (ascending), writers (ascending), so that
// commits, folds, opens and take-overs never wait for each other in a circle. One asks who owns the database last, what empties
// a segment of the journal: it holds writers, then masters FOR KEY SHARE. For that it waits behind nobody but who is taking the
// database (kLockOwnerToTake), once that one holds the row, and that transaction locks nothing else. A transaction that writes a
// trial's data holds its row FOR KEY SHARE while it checks owner_epoch; whoever raises owner_epoch
// locks it FOR UPDATE first. Who carries rows of recent holds them before their trials: nobody waits for such rows with
// a trial held FOR UPDATE. Numbering writers and series (FOR NO KEY UPDATE) waits for neither.
#pragma once

#include "storage/pg_profiling.h"
#include "storage/pg_trial_filter.h"

namespace stepwell::sql {

// Before it takes what is another's, or a former process's: waits for the transactions that asked who owns it, and holds the
// row until it is taken. No row = it may not be taken, or nobody has ever owned it. $1 master id, $2 newest epoch that this
// process held (0 = none), $3 the renewal that it saw lapse (1970 = none): by no clock of this server, which may be set. The
// same id alone is enough once only: two processes with one id would else take over from each other for ever.
inline constexpr char kLockOwnerToTake[] = R"(
select epoch from stepwell.masters
where slot = 0
  and ((master_id = $1 and $2::bigint in (0, epoch))
       or renewed_time in (to_timestamp(0), $3::timestamptz))
for update)";

// Only with the row held by kLockOwnerToTake, which alone tells who may: it may lapse, or be released, behind an answer that it
// may not be taken, and this UPDATE waits for nobody who has asked (it changes no key). $1 master id, $2 address, $3 as $2
// above: an epoch is above it also where the row was set back (a recovery), for what a process remembers goes by the epoch.
inline constexpr char kTakeOwnership[] = R"(
update stepwell.masters
set master_id = $1, address = $2, epoch = greatest(epoch, $3::bigint) + 1,
    renewed_time = clock_timestamp(), migration = 20
where slot = 0
returning epoch)";
// Of a database that nobody has ever owned.
inline constexpr char kBeginOwnership[] = R"(
insert into stepwell.masters (slot, master_id, epoch, address, renewed_time, migration)
values (0, $1, $3::bigint + 1, $2, clock_timestamp(), 20)
on conflict (slot) do nothing
returning epoch)";

inline constexpr char kRenewOwnership[] = R"(
update stepwell.masters set renewed_time = clock_timestamp(), address = $2
where slot = 0 and master_id = $1 and epoch = $3
returning epoch)";

// The next master that asks takes it.
inline constexpr char kReleaseOwnership[] = R"(
update stepwell.masters set renewed_time = to_timestamp(0)
where slot = 0 and master_id = $1 and epoch = $2)";

inline constexpr char kReadOwner[] = R"(
select master_id, epoch,
       extract(epoch from clock_timestamp() - renewed_time)::float8, renewed_time
from stepwell.masters where slot = 0)";

// Waits for a take-over under way; a take-over waits for the transaction that asked, which may last. A renewal, which
// changes no key, does not.
inline constexpr char kLockOwner[] =
    "select epoch from stepwell.masters where slot = 0 for key share";

// Every trial that a transaction of the new owner may write before somebody opens it again. Of writers
// that are not open, stepwell.writers tells all.
inline constexpr char kLockTrialsToFence[] = R"(
select t.trial_id from stepwell.trials t
where t.owner_epoch < $1
  and (t.state = 1
       or t.trial_id in (select w.trial_id from stepwell.writers w
                         where w.state = 1 or w.committed_sequence > w.folded_sequence)
       or t.trial_id in (select r.trial_id from stepwell.recent_ticks r))
order by t.trial_id for update)";
// Where stepwell.recent_ticks cannot be read as a whole.
inline constexpr char kLockAllTrialsToFence[] =
    "select trial_id from stepwell.trials where owner_epoch < $1 order by trial_id for update";

inline constexpr char kRaiseOwnerEpoch[] =
    "update stepwell.trials set owner_epoch = $2 where trial_id = any($1) and owner_epoch < $2";

// Rows missing from the answer belong to another master, or are gone.
inline constexpr char kCheckOwner[] = R"(
select trial_id, deleted_time is not null from stepwell.trials
where trial_id = any($1) and owner_epoch = $2 order by trial_id for key share)";

inline constexpr char kReadTrialsOf[] =
    "select trial_id from stepwell.trials where trial_id = any($1)";

// One that is deleted is nobody's: no other master took it.
inline constexpr char kFindLivingTrial[] =
    "select from stepwell.trials where trial_id = $1 and deleted_time is null";

// The same two for commits: writers of a trial that is archived or deleted are refused as if it were
// gone.
inline constexpr char kCheckOwnerToCommit[] = R"(
select trial_id from stepwell.trials
where trial_id = any($1) and owner_epoch = $2 and not archived and deleted_time is null
order by trial_id for key share)";
inline constexpr char kReadTrialsToCommit[] = R"(
select trial_id from stepwell.trials
where trial_id = any($1) and not archived and deleted_time is null)";

// --- where writers stand (pg_progress.h has the invariant) ---

// One commit at a time: who goes by a book must know that nobody commits beside it.
inline constexpr char kHoldProgressBook[] =
    "select book_no from stepwell.progress_book for no key update";
inline constexpr char kBeginProgressBook[] =
    "update stepwell.progress_book set book_no = book_no + 1 returning book_no";

#define STEPWELL_WRITER_PROGRESS \
  "w.trial_id, w.writer_no, w.generation, w.committed_sequence, w.folded_sequence, w.state"

// Who commits, opens, folds or closes a writer holds its row. A statement that waited for a row sees the
// newest of it, but progress as of before it waited: so progress is read by a statement after this one.
inline constexpr char kLockWriterPairs[] = "select " STEPWELL_WRITER_PROGRESS R"(
from unnest($1::bigint[], $2::integer[]) as t (trial_id, writer_no)
join stepwell.writers w on w.trial_id = t.trial_id and w.writer_no = t.writer_no
order by w.trial_id, w.writer_no for no key update of w)";
// After a COMMIT in doubt: waits until the backend that may still be at it has let the rows go.
inline constexpr char kSettleWriterPairs[] = R"(
select from unnest($1::bigint[], $2::integer[]) as t (trial_id, writer_no)
join stepwell.writers w on w.trial_id = t.trial_id and w.writer_no = t.writer_no
order by w.trial_id, w.writer_no for share of w)";

inline constexpr char kReadWriterPairs[] = "select " STEPWELL_WRITER_PROGRESS R"(
from unnest($1::bigint[], $2::integer[]) as t (trial_id, writer_no)
join stepwell.writer_progress w on w.trial_id = t.trial_id and w.writer_no = t.writer_no
order by w.trial_id, w.writer_no)";

// $1 trial, $2 writer_no, $3 committed_sequence, $4 crc32c; the table stands before it.
inline constexpr char kIntoProgress[] = R"(
 (trial_id, writer_no, committed_sequence, last_crc32c)
select * from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]))";

// Their rows are held. What is closed has all of its progress in its row; a sequence that only closes
// keeps the checksum.
// $1 trial, $2 writer_no, $3 generation, $4 first, $5 last, $6 crc32c, $7 state after.
inline constexpr char kCloseWriters[] = R"(
update stepwell.writers w
set state = t.state, committed_sequence = t.last_sequence,
    last_crc32c = case when t.last_sequence >= t.first_sequence then t.crc32c
                       else p.last_crc32c end
from unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::smallint[])
       as t (trial_id, writer_no, generation, first_sequence, last_sequence, crc32c, state)
join stepwell.writer_progress p on p.trial_id = t.trial_id and p.writer_no = t.writer_no
where w.trial_id = t.trial_id and w.writer_no = t.writer_no and w.state = 1
  and w.generation = t.generation and p.committed_sequence = t.first_sequence - 1)";

// What a segment of progress tells, into the writers' rows; they are locked in order first, for an UPDATE
// alone locks them in the order of its plan. %table is the segment.
inline constexpr char kCarryProgress[] = R"(
with newest as (
  select p.trial_id, p.writer_no, max(p.committed_sequence) as committed_sequence
  from %table p group by 1, 2
), locked as (
  select n.trial_id, n.writer_no, n.committed_sequence
  from newest n join stepwell.writers w
    on w.trial_id = n.trial_id and w.writer_no = n.writer_no
  where w.committed_sequence < n.committed_sequence
  order by w.trial_id, w.writer_no
  for no key update of w
)
update stepwell.writers w
set committed_sequence = p.committed_sequence, last_crc32c = p.last_crc32c
from locked l join %table p on p.trial_id = l.trial_id and p.writer_no = l.writer_no
  and p.committed_sequence = l.committed_sequence
where w.trial_id = l.trial_id and w.writer_no = l.writer_no
  and w.committed_sequence < l.committed_sequence)";

// A master may end between a Close and what that makes of the trial: the next one has to see it.
inline constexpr char kReadUnfinishedWriters[] = "select " STEPWELL_WRITER_PROGRESS R"(
from stepwell.writers u
join stepwell.writer_progress w on w.trial_id = u.trial_id and w.writer_no = u.writer_no
where u.state = 1 or u.committed_sequence > u.folded_sequence
   or u.trial_id in (select t.trial_id from stepwell.trials t where t.state in (1, 4))
order by w.trial_id, w.writer_no)";

// $2 of those that are open; a null behind them where one died. A range of the key each: whether one is open, its own
// row tells, whatever progress says.
inline constexpr char kReadTrialWriters[] = R"(
(select writer_no from stepwell.writers where trial_id = $1 and state = 1
 order by writer_no limit $2)
union all
(select null::integer from stepwell.writers where trial_id = $1 and state = 3 limit 1))";

inline constexpr char kReadIncarnation[] = "select incarnation from stepwell.database";
// Where it lay (0 = not known) and where it lies: cluster, timeline, database, table. The timeline by the name of the WAL's
// file, for pg_control_checkpoint() tells that of the last checkpoint, which a promotion does not wait for.
#define STEPWELL_READ_DATABASE(cluster)                                                         \
  "select d.incarnation, coalesce(d.system_identifier, 0), coalesce(d.timeline, 0), "           \
  "coalesce(d.database_oid, 0), coalesce(d.table_oid, 0), " cluster                             \
  ", (select b.oid::bigint from pg_catalog.pg_database b where b.datname = current_database())" \
  ", d.tableoid::bigint from stepwell.database d"
inline constexpr char kReadDatabase[] = STEPWELL_READ_DATABASE(
    "(select c.system_identifier from pg_catalog.pg_control_system() c), "
    "('x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8))"
    "::bit(32)::bigint");
inline constexpr char kReadDatabaseAlone[] = STEPWELL_READ_DATABASE("0::bigint, 0::bigint");
#undef STEPWELL_READ_DATABASE
// $1 whether it is another one, then its place.
inline constexpr char kNoteDatabase[] = R"(
update stepwell.database
set incarnation = case when $1 then gen_random_uuid() else incarnation end,
    system_identifier = nullif($2, 0), timeline = nullif($3, 0),
    database_oid = nullif($4, 0), table_oid = nullif($5, 0)
returning incarnation)";

// --- trials, attempts, writers ---

#define STEPWELL_TRIAL_TO_OPEN                                                      \
  "select t.trial_id, t.owner_epoch, t.attempt_count, t.writer_count, t.archived, " \
  "t.deleted_time is not null, coalesce(" STEPWELL_TRIAL_LET_THROUGH                \
  ", false), " STEPWELL_TRIAL_PROFILING                                             \
  " from stepwell.trials t join stepwell.projects p on p.project_id = t.project_id where "
inline constexpr char kFindTrialById[] =
    STEPWELL_TRIAL_TO_OPEN "t.trial_id = $6 for no key update of t";
inline constexpr char kFindTrialByName[] =
    STEPWELL_TRIAL_TO_OPEN "p.name = $6 and t.external_id = $7 for no key update of t";
inline constexpr char kCreateProject[] =
    "insert into stepwell.projects (name) values ($1) on conflict (name) do nothing";
inline constexpr char kCreateTrialById[] = R"(
insert into stepwell.trials (trial_id, project_id, external_id, owner_epoch)
select $1, project_id, null, $2 from stepwell.projects where name = 'default'
on conflict do nothing)";
inline constexpr char kCreateTrialByName[] = R"(
insert into stepwell.trials (trial_id, project_id, external_id, owner_epoch)
select nextval('stepwell.trial_numbers'), project_id, $2, $3
from stepwell.projects where name = $1
on conflict do nothing)";
inline constexpr char kLockTrialToRaise[] =
    "select owner_epoch from stepwell.trials where trial_id = $1 for update";
inline constexpr char kUpdateTrialOpened[] = R"(
update stepwell.trials
set attempt_count = $2, writer_count = $3, owner_epoch = $4, state = 1
where trial_id = $1)";
// A trial that was at rest during a take-over keeps its lower epoch until it is opened again.
// So the masters row, where there is one, tells a former owner of it. Locked first, as everywhere.
inline constexpr char kSetTrialState[] = R"(
with owner as materialized (select epoch from stepwell.masters where slot = 0 for key share)
update stepwell.trials set state = $2
where trial_id = $1 and deleted_time is null and owner_epoch <= $3 and not exists (select from owner where epoch <> $3))";

// As kSetTrialState. $2 on, $3 interval, $4 groups, $5 epoch.
inline constexpr char kSetProfiling[] = R"(
with owner as materialized (select epoch from stepwell.masters where slot = 0 for key share)
update stepwell.trials t
set profiling_revision = t.profiling_revision + 1, profiling_on = $2, profiling_interval_us = $3,
    profiling_groups = $4
where t.trial_id = $1 and t.deleted_time is null and t.owner_epoch <= $5
  and not exists (select from owner where epoch <> $5)
returning )" STEPWELL_TRIAL_PROFILING;

inline constexpr char kFindAttempt[] =
    "select attempt from stepwell.attempts where trial_id = $1 and attempt_key = $2";
inline constexpr char kCreateAttempt[] =
    "insert into stepwell.attempts (trial_id, attempt, attempt_key) values ($1, $2, $3)";
// The attempt that a sampler opened before any rank did takes the first key it is told.
inline constexpr char kNameAttempt[] = R"(
update stepwell.attempts set attempt_key = $2
where trial_id = $1 and attempt_key = '' returning attempt)";

// $2 writers. Locked in order, as everywhere.
inline constexpr char kFindWriters[] = R"(
select k.ordinal::integer, w.writer_no, w.generation, w.folded_sequence, w.attempt
from unnest($2::uuid[]) with ordinality as k (writer, ordinal)
join stepwell.writers w on w.trial_id = $1 and w.writer = k.writer
order by w.writer_no for no key update of w)";
// Once the rows are held: nobody commits for them any more.
inline constexpr char kReadHeldWriters[] = R"(
select w.writer_no, w.committed_sequence, w.last_crc32c
from unnest($2::integer[]) as k (writer_no)
join stepwell.writer_progress w on w.trial_id = $1 and w.writer_no = k.writer_no)";
// $2 writer_no, $3 generation, $4 committed_sequence, $5 crc32c.
inline constexpr char kReopenWriters[] = R"(
update stepwell.writers w
set generation = k.generation, state = 1, committed_sequence = k.committed_sequence,
    last_crc32c = k.last_crc32c
from unnest($2::integer[], $3::bigint[], $4::bigint[], $5::bigint[])
       as k (writer_no, generation, committed_sequence, last_crc32c)
where w.trial_id = $1 and w.writer_no = k.writer_no)";
inline constexpr char kCreateWriters[] = R"(
insert into stepwell.writers (trial_id, writer_no, writer, generation, attempt, rank)
select $1, k.writer_no, k.writer, k.generation, k.attempt,
       case when k.is_sampler = 0 then k.rank end
from unnest($2::integer[], $3::uuid[], $4::bigint[], $5::integer[], $6::integer[], $7::smallint[])
       as k (writer_no, writer, generation, attempt, rank, is_sampler))";
inline constexpr char kCreateWriterOrigins[] = R"(
insert into stepwell.writer_origins
  (trial_id, writer_no, agent_id, machine, world_size, labels, recorder_version, agent_version)
select $1, k.* from unnest($2::integer[], $3::text[], $4::text[], $5::integer[], $6::jsonb[],
                           $7::text[], $8::text[]) as k)";
// Of each the newest 1000, oldest of them first.
inline constexpr char kReadRejections[] = R"(
select g.writer_no, g.metric_group, g.sample_count, g.first_time_us, g.last_time_us,
       g.first_sequence, g.last_sequence, g.reason
from unnest($2::integer[]) as k (writer_no)
cross join lateral (
  select * from stepwell.gaps g
  where g.trial_id = $1 and g.writer_no = k.writer_no and g.cause = 9 and g.last_sequence > 0
  order by g.gap_no desc limit 1000) g
order by g.gap_no)";

// --- series ---

// $1 trial, then vectors: group, name, hash of the labels.
// Each by its key, which the limit, of what is unique, makes sure of: as a join, a table that was not analyzed since it grew
// is read whole, and hashed, for each thousand.
inline constexpr char kFindSeries[] = R"(
select k.ordinal::integer, s.series_no, s.kind, s.unit
from unnest($2::text[], $3::text[], $4::bytea[]) with ordinality
       as k (metric_group, name, labels_hash, ordinal)
cross join lateral (
  select series_no, kind, unit from stepwell.series
  where trial_id = $1 and metric_group = k.metric_group and name = k.name
    and labels_hash = k.labels_hash
  limit 1) as s)";
inline constexpr char kReadSeriesCount[] =
    "select series_count from stepwell.trials where trial_id = $1 and deleted_time is null";
inline constexpr char kLockSeriesCount[] =
    "select series_count from stepwell.trials where trial_id = $1 and deleted_time is null "
    "for no key update";
inline constexpr char kCreateSeries[] = R"(
insert into stepwell.series
  (trial_id, series_no, kind, metric_group, name, unit, labels, labels_hash)
select $1, k.* from unnest($2::integer[], $3::smallint[], $4::text[], $5::text[], $6::text[],
                           $7::jsonb[], $8::bytea[]) as k)";
inline constexpr char kSetSeriesCount[] =
    "update stepwell.trials set series_count = $2 where trial_id = $1";

// --- gaps ---

// The newest row of each (trial, writer, cause, group, reason): the one that may go on. $1 to $3: each trial, writer and
// cause once. $4 to $8: what is looked for.
// The rows of a writer and cause are read once, whatever is looked for: a key that no row has would read all of them, of
// thousands of keys each. A `case` is not taken for a join, so that what is looked for is hashed once.
inline constexpr char kReadGapTails[] = R"(
select g.trial_id, g.gap_no, g.writer_no, g.cause, g.metric_group, g.sample_count,
       g.first_time_us, g.last_time_us, g.first_sequence, g.last_sequence, g.reason
from (select g.trial_id, g.writer_no, g.cause, max(g.gap_no) as gap_no
      from unnest($1::bigint[], $2::integer[], $3::smallint[]) as k (trial_id, writer_no, cause)
      cross join lateral (
        select * from stepwell.gaps g
        where g.trial_id = k.trial_id and g.writer_no = k.writer_no and g.cause = k.cause
        offset 0) g
      where case when (g.trial_id, g.writer_no, g.cause, g.metric_group, g.reason) in
        (select * from unnest($4::bigint[], $5::integer[], $6::smallint[], $7::text[], $8::text[]))
        then true end
      group by g.trial_id, g.writer_no, g.cause, g.metric_group, g.reason) t
cross join lateral (
  select * from stepwell.gaps g
  where g.trial_id = t.trial_id and g.writer_no = t.writer_no and g.cause = t.cause
    and g.gap_no = t.gap_no
  limit 1) g
order by g.gap_no)";
// And of each (trial, writer, cause), with the number of its rows.
inline constexpr char kCountGaps[] = R"(
select c.trial_id, c.gap_no, c.writer_no, c.cause, g.metric_group, g.sample_count,
       g.first_time_us, g.last_time_us, g.first_sequence, g.last_sequence, g.reason, c.row_count
from (select g.trial_id, g.writer_no, g.cause, max(g.gap_no) as gap_no, count(*) as row_count
      from unnest($1::bigint[], $2::integer[], $3::smallint[]) as k (trial_id, writer_no, cause)
      join stepwell.gaps g on g.trial_id = k.trial_id and g.writer_no = k.writer_no
        and g.cause = k.cause
      group by 1, 2, 3) c
join stepwell.gaps g on g.trial_id = c.trial_id and g.writer_no = c.writer_no
  and g.cause = c.cause and g.gap_no = c.gap_no
order by c.gap_no)";
inline constexpr char kInsertGaps[] = R"(
insert into stepwell.gaps
  (trial_id, writer_no, cause, metric_group, sample_count, first_time_us, last_time_us,
   first_sequence, last_sequence, reason)
select * from unnest($1::bigint[], $2::integer[], $3::smallint[], $4::text[], $5::bigint[],
                     $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[]))";
inline constexpr char kExtendGaps[] = R"(
update stepwell.gaps g
set metric_group = k.metric_group, sample_count = k.sample_count,
    first_time_us = k.first_time_us, last_time_us = k.last_time_us,
    first_sequence = k.first_sequence, last_sequence = k.last_sequence
from unnest($1::bigint[], $2::integer[], $3::smallint[], $4::text[], $5::bigint[],
            $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[])
  as k (trial_id, writer_no, cause, metric_group, sample_count, first_time_us, last_time_us,
        first_sequence, last_sequence, reason, gap_no)
where g.trial_id = k.trial_id and g.writer_no = k.writer_no and g.cause = k.cause
  and g.gap_no = k.gap_no)";

}  // namespace stepwell::sql
