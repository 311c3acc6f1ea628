// The SQL of reads, by name. Values are bound; what is pasted in are column lists and numbers of
// placeholders of ours.
#pragma once

#include "storage/pg_profiling.h"

namespace stepwell::sql {

inline constexpr char kBeginRead[] = "begin isolation level repeatable read, read only";

// $1 and $2: milliseconds as text; $3 and $4 as of kPlanRead.
inline constexpr char kLimitRead[] = R"(
select set_config('statement_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true),
       set_config('jit', 'off', true),
       set_config('plan_cache_mode', $3, true), set_config('enable_seqscan', $4, true))";
// $1 as there.
inline constexpr char kShortenRead[] = "select set_config('statement_timeout', $1, true)";
inline constexpr char kPlanRead[] =
    "select set_config('plan_cache_mode', $1, true), set_config('enable_seqscan', $2, true)";

inline constexpr char kReadOwnerEpoch[] = "select epoch from stepwell.masters where slot = 0";

// $2 whether only those of the projects $3 are there.
inline constexpr char kReadTrialIdById[] = R"(
select t.trial_id, p.name from stepwell.trials t
join stepwell.projects p on p.project_id = t.project_id
where t.trial_id = $1 and t.deleted_time is null and (not $2 or p.name = any($3)))";
// $3 and $4 likewise.
inline constexpr char kReadTrialIdByName[] = R"(
select t.trial_id, p.name from stepwell.trials t
join stepwell.projects p on p.project_id = t.project_id
where p.name = $1 and t.external_id = $2 and t.deleted_time is null
  and (not $3 or p.name = any($4)))";

// Cause 10 (clock) misses nothing; 4 (unsupported) and 5 (no permission) say that nothing was ever
// measured, so nothing of what was sent is missing.
#define STEPWELL_GAP_SUMS                                                                  \
  "select least(coalesce(sum(sample_count) filter (where cause <> 10), 0), "               \
  "             9223372036854775807)::bigint as missing, "                                 \
  "       coalesce(bool_or(sample_count > 0 and cause <> 10 or cause not in (4, 5, 10)), " \
  "                false) as is_missing "                                                  \
  "from stepwell.gaps "

#define STEPWELL_TRIAL_COLUMNS                                                        \
  "t.trial_id, p.name, coalesce(t.external_id, ''), t.state, t.created_time, "        \
  "t.attempt_count, t.writer_count, t.series_count, "                                 \
  "coalesce(u.samples, 0)::bigint, coalesce(u.first_us, 0), coalesce(u.last_us, 0), " \
  "g.missing, g.is_missing, " STEPWELL_TRIAL_PROFILING
#define STEPWELL_TRIAL_TABLES "stepwell.trials t " STEPWELL_OF_TRIAL
#define STEPWELL_OF_TRIAL                                                                    \
  "join stepwell.projects p on p.project_id = t.project_id "                                 \
  "left join lateral (select sum(sample_count) as samples, min(first_time_us) as first_us, " \
  "  max(last_time_us) as last_us from stepwell.usage where trial_id = t.trial_id "          \
  "  and (sample_count > 0 or rollup_byte_count > 0)) u on true "                            \
  "cross join lateral (" STEPWELL_GAP_SUMS "where trial_id = t.trial_id) g "

inline constexpr char kReadTrial[] = "select " STEPWELL_TRIAL_COLUMNS " from " STEPWELL_TRIAL_TABLES
                                     "where t.trial_id = $1 and t.deleted_time is null";

// $1 trial, $2 attempt.
inline constexpr char kReadAttemptCreated[] =
    "select created_time from stepwell.attempts where trial_id = $1 and attempt = $2";

// A page of trials is looked for among the newest $6 of an index that are older than ($1, $2), so that it costs no
// more where there are more: of all, of a state, or of each of some projects. Those that are deleted are among them
// where the index has them.
// $3 part of the name, $4 state or 0, $5 limit, $6 how many are looked at. The page first, so that nothing is summed up
// for trials that are not on it.
//
// The bound and the order name all columns of the index, for another one of their age may seem cheaper where most
// trials are of one state or project: among these the few of another are not to be found.
#define STEPWELL_BY_AGE "order by created_time desc, trial_id desc "
#define STEPWELL_BY_STATE "order by state desc, created_time desc, trial_id desc "
#define STEPWELL_BY_PROJECT "order by project_id desc, created_time desc, trial_id desc "
#define STEPWELL_AMONG_ALL \
  "from stepwell.trials where (created_time, trial_id) < ($1, $2) " STEPWELL_BY_AGE
#define STEPWELL_AMONG_STATE                                                   \
  "from stepwell.trials where (state, created_time, trial_id) < ($4, $1, $2) " \
  "and state >= $4 and deleted_time is null " STEPWELL_BY_STATE
#define STEPWELL_AMONG_PROJECT                                                                \
  "from stepwell.trials where (project_id, created_time, trial_id) < (q.project_id, $1, $2) " \
  "and project_id >= q.project_id " STEPWELL_BY_PROJECT
#define STEPWELL_LISTED_TRIALS(among)               \
  "select * from (select * " among                  \
  "limit $6) looked_at where deleted_time is null " \
  "and ($3 = '' or strpos(external_id, $3) > 0) and ($4::smallint = 0 or state = $4) "
#define STEPWELL_NEWEST_FIRST "order by t.created_time desc, t.trial_id desc "
inline constexpr char kListTrials[] =
    "select " STEPWELL_TRIAL_COLUMNS " from (" STEPWELL_LISTED_TRIALS(STEPWELL_AMONG_ALL)
        STEPWELL_BY_AGE "limit $5) t " STEPWELL_OF_TRIAL STEPWELL_NEWEST_FIRST;
// $7: whether of all projects, otherwise of those in $8.
inline constexpr char kListTrialsOfState[] =
    "select " STEPWELL_TRIAL_COLUMNS " from (" STEPWELL_LISTED_TRIALS(STEPWELL_AMONG_STATE)
    "and ($7::boolean or project_id = any(array("
    "select project_id from stepwell.projects where name = any($8::text[])))) " STEPWELL_BY_STATE
    "limit $5) t " STEPWELL_OF_TRIAL STEPWELL_NEWEST_FIRST;
// Of the projects $7: a page of each, so that none of the others' trials is looked at.
inline constexpr char kListTrialsOfProjects[] =
    "select " STEPWELL_TRIAL_COLUMNS
    " from (select t.* from stepwell.projects q cross join lateral (" STEPWELL_LISTED_TRIALS(
        STEPWELL_AMONG_PROJECT) STEPWELL_BY_PROJECT
    "limit $5) t where q.name = any($7) " STEPWELL_NEWEST_FIRST
    "limit $5) t " STEPWELL_OF_TRIAL STEPWELL_NEWEST_FIRST;

// The last that those look at, if there are so many; $3 one less than how many, $4 the state or the projects. Of
// several projects the newest: behind it not all of them were looked at. Of a state it is of any project: it tells those
// who list some projects that there are more, and is told to nobody but who lists all.
inline constexpr char kLastLookedAt[] =
    "select created_time, trial_id " STEPWELL_AMONG_ALL "offset $3 limit 1";
inline constexpr char kLastLookedAtOfState[] =
    "select created_time, trial_id " STEPWELL_AMONG_STATE "offset $3 limit 1";
inline constexpr char kLastLookedAtOfProjects[] =
    "select t.created_time, t.trial_id from stepwell.projects q cross join lateral ("
    "select created_time, trial_id " STEPWELL_AMONG_PROJECT
    "offset $3 limit 1) t where q.name = any($4) " STEPWELL_NEWEST_FIRST "limit 1";

inline constexpr char kListWriters[] = R"(
select w.writer_no, w.attempt, w.rank, coalesce(o.agent_id, ''), w.state, w.committed_sequence,
       w.folded_sequence, coalesce(o.world_size, 0)
from stepwell.writers w
left join stepwell.writer_origins o on o.trial_id = w.trial_id and o.writer_no = w.writer_no
where w.trial_id = $1 order by w.writer_no limit $2)";

// Labels come as name NUL value NUL ..., sorted by bytes; neither can hold a NUL.
// $1 trial, $2 group, $3 name, $4 and $5 labels, $6 numbers, $7 after, $8 limit.
inline constexpr char kListSeries[] = R"(
select s.series_no, s.kind, s.metric_group, s.name, s.unit,
  coalesce((select string_agg(convert_to(l.key, 'UTF8') || '\x00'::bytea ||
                              convert_to(l.value, 'UTF8') || '\x00'::bytea, ''::bytea
                              order by l.key collate "C")
            from jsonb_each_text(s.labels) l), ''::bytea)
from stepwell.series s
where s.trial_id = $1 and ($2 = '' or s.metric_group = $2) and ($3 = '' or s.name = $3)
  and s.labels @> jsonb_object($4::text[], $5::text[])
  and (cardinality($6::integer[]) = 0 or s.series_no = any($6)) and s.series_no > $7
order by s.series_no limit $8)";

// $1 trial, $2 and $3 first and last time (both 0 = all), $4 limit + 1, $5 cause (0 = any), $6 metric group ('' = any).
inline constexpr char kListGaps[] = R"(
select writer_no, cause, metric_group, sample_count, first_time_us, last_time_us,
       first_sequence, last_sequence, reason
from stepwell.gaps
where trial_id = $1
  and (($2 = 0 and $3 = 0) or (first_time_us = 0 and last_time_us = 0)
       or (last_time_us >= $2 and first_time_us <= $3))
  and ($5 = 0 or cause = $5) and ($6 = '' or metric_group in ('', $6))
order by gap_no limit $4)";

inline constexpr char kReadUsage[] = R"(
select received_day, keep_class, metric_group, row_count, sample_count, byte_count,
       first_time_us, last_time_us, has_rollups, rollup_byte_count, removed_sample_count
from stepwell.usage where trial_id = $1
order by keep_class, received_day, metric_group)";

// What every row of metrics and recent is read by; `bits` and the like come null for a row that
// its statistics describe fully ($grid).
inline constexpr char kRowHead[] =
    "trial_id, series_no, writer_no, tick_no, first_time_us, last_time_us, sample_count, "
    "nan_count, coalesce(min, 0) as min, coalesce(max, 0) as max, coalesce(sum, 0) as sum, "
    "coalesce(last, 0) as last, form, width, width2, base, factor, divisor_exponent, "
    "received_day, keep_class";

// $1 trial, $2 and $3: writer_no and tick_no of metrics rows; $4 and $5: of recent ones.
inline constexpr char kTickColumns[] =
    "writer_no, tick_no, keep_class, received_day, tick_count, "
    "time_form, time_width, time_width2, time_base, time_factor, time_bits, time_bits2, "
    "time_dictionary, batch_form, batch_width, batch_width2, batch_base, batch_factor, "
    "batch_bits, batch_bits2, batch_dictionary";

}  // namespace stepwell::sql
