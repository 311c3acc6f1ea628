// The SQL of caps, by name. Locks are taken in the order that pg_sql.h tells; caps and keep_classes come
// after masters and trials.
#pragma once

#include "storage/pg_trial_filter.h"

namespace stepwell::sql {

// Columns of caps as CapsAt reads them, after place and place_id.
#define STEPWELL_CAPS_COLUMNS                                                      \
  "c.place, c.place_id, c.metric_group, c.raw_age_seconds, c.rollup_age_seconds, " \
  "c.trial_bytes, c.series_samples, c.profiling_window_seconds, c.trace_bytes, "   \
  "c.trial_trace_bytes, c.trace_age_seconds"

// Those that decide over trial $1; a row without a place where none does. No row: there is no trial.
inline constexpr char kReadCapsOfTrial[] = "select " STEPWELL_CAPS_COLUMNS R"(, t.project_id,
  t.created_time
from stepwell.trials t
left join stepwell.caps c
  on c.place = 0 or (c.place = 1 and c.place_id = t.project_id)
  or (c.place = 2 and c.place_id = t.trial_id)
where t.trial_id = $1 and t.deleted_time is null)";

#define STEPWELL_KEEP_CLASSES                                             \
  "select keep_class, coalesce(extract(epoch from raw_age), 0)::bigint, " \
  "  coalesce(extract(epoch from rollup_age), 0)::bigint from stepwell.keep_classes "
inline constexpr char kReadKeepClasses[] = STEPWELL_KEEP_CLASSES "order by keep_class";
// $1 classes. They keep their ages until the transaction ends.
inline constexpr char kHoldKeepClasses[] =
    STEPWELL_KEEP_CLASSES "where keep_class = any($1) order by keep_class for key share";

// With the names of their owners, widest first: what is set for all trials, and where $1 of projects and trials of the
// projects $2 alone.
inline constexpr char kReadPlaces[] = "select " STEPWELL_CAPS_COLUMNS R"(,
  coalesce(p.name, ''), coalesce(t.external_id, ''), coalesce(t.project_id, 0)
from stepwell.caps c
left join stepwell.trials t on c.place = 2 and t.trial_id = c.place_id
left join stepwell.projects p
  on p.project_id = coalesce(t.project_id, case when c.place = 1 then c.place_id end)
where c.place = 0 or not $1 or p.name = any($2)
order by c.place + case when c.metric_group = '' then 0 else 3 end, c.place_id, c.metric_group)";

// Writers of caps take turns; readers go on.
inline constexpr char kLockCaps[] = "lock table stepwell.caps in share row exclusive mode";
// $2 and $3 as in kFindTrialToCapById.
inline constexpr char kFindProject[] =
    "select project_id from stepwell.projects where name = $1 and (not $2 or name = any($3))";
// $1 place, $2 id, $3 group, then the eight.
inline constexpr char kWriteCaps[] = R"(
insert into stepwell.caps
  (place, place_id, metric_group, raw_age_seconds, rollup_age_seconds, trial_bytes, series_samples,
   profiling_window_seconds, trace_bytes, trial_trace_bytes, trace_age_seconds)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (place, place_id, metric_group) do update
set raw_age_seconds = excluded.raw_age_seconds, rollup_age_seconds = excluded.rollup_age_seconds,
    trial_bytes = excluded.trial_bytes, series_samples = excluded.series_samples,
    profiling_window_seconds = excluded.profiling_window_seconds,
    trace_bytes = excluded.trace_bytes, trial_trace_bytes = excluded.trial_trace_bytes,
    trace_age_seconds = excluded.trace_age_seconds, set_time = now())";
inline constexpr char kDeleteCaps[] =
    "delete from stepwell.caps where place = $1 and place_id = $2 and metric_group = $3";

// Merges that hold a class end first; those that come later see what is written here.
inline constexpr char kLockKeepClasses[] = STEPWELL_KEEP_CLASSES "order by keep_class for update";
// Classes without a row: $1 are those looked at.
inline constexpr char kFindEmptyClasses[] = R"(
select k.keep_class from unnest($1::smallint[]) as k (keep_class)
where not exists (select from stepwell.usage u where u.keep_class = k.keep_class
                  and (u.row_count > 0 or u.byte_count > 0 or u.rollup_byte_count > 0))
  and not exists (select from stepwell.swept_leaves s
                  where s.keep_class = k.keep_class and not s.emptied))";
// $1 class, $2 and $3 ages in seconds, 0 = for ever.
inline constexpr char kWriteKeepClass[] = R"(
insert into stepwell.keep_classes (keep_class, raw_age, rollup_age)
values ($1, case when $2 > 0 then make_interval(secs => $2) end,
        case when $3 > 0 then make_interval(secs => $3) end)
on conflict (keep_class) do update
set raw_age = excluded.raw_age, rollup_age = excluded.rollup_age)";

// --- trials that are archived or deleted ---

#define STEPWELL_TRIAL_TO_CHANGE                                                      \
  "select t.trial_id, t.archived, t.deleted_time is not null, t.project_id, p.name, " \
  "  coalesce(t.external_id, '') "                                                    \
  "from stepwell.trials t join stepwell.projects p on p.project_id = t.project_id "   \
  "where " STEPWELL_TRIAL_LET_THROUGH " and "
// $1 to $5 say which trials may be found.
inline constexpr char kFindTrialToCapById[] = STEPWELL_TRIAL_TO_CHANGE "t.trial_id = $6";
inline constexpr char kFindTrialToCapByName[] =
    STEPWELL_TRIAL_TO_CHANGE "p.name = $6 and t.external_id = $7";
// Ends the transactions that write the trial's data first.
inline constexpr char kLockTrialToChange[] =
    "select archived, deleted_time is not null from stepwell.trials where trial_id = $1 for update";
inline constexpr char kArchiveTrial[] =
    "update stepwell.trials set archived = $2 where trial_id = $1";
// It has ended, and nobody writes it: no master looks after it any more. 2: completed, closed.
inline constexpr char kBuryTrial[] =
    "update stepwell.trials set deleted_time = now(), state = 2 where trial_id = $1";
// What is closed has all of its progress in its row.
inline constexpr char kCloseWritersOf[] = R"(
update stepwell.writers w
set state = 2, committed_sequence = p.committed_sequence, last_crc32c = p.last_crc32c
from stepwell.writer_progress p
where w.trial_id = $1 and w.state = 1 and p.trial_id = $1 and p.writer_no = w.writer_no)";
inline constexpr char kDeleteCapsOfTrial[] =
    "delete from stepwell.caps where place = 2 and place_id = $1";
inline constexpr char kSumUsageOfTrial[] = R"(
select coalesce(sum(sample_count), 0)::bigint,
       coalesce(sum(byte_count + rollup_byte_count), 0)::bigint
from stepwell.usage where trial_id = $1)";

// Once for a trial. $2 when its window ended, $3 kWindowOverReason. 11: GapCause CAP.
inline constexpr char kNoteWindowOver[] = R"(
insert into stepwell.gaps
  (trial_id, writer_no, cause, metric_group, sample_count, first_time_us, last_time_us,
   first_sequence, last_sequence, reason)
select $1, 0, 11, '', 0, $2, 0, 0, 0, $3::text
where not exists (select from stepwell.gaps g
                  where g.trial_id = $1 and g.writer_no = 0 and g.cause = 11
                    and g.reason = $3))";

}  // namespace stepwell::sql
