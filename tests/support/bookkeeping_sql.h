// BookkeepingSql: questions whose answer is empty text when the bookkeeping is right, else a line for each
// thing that is wrong. They share nothing with the statements of storage: bytes are counted from the rows
// themselves. Pure functions.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell::testing {

// Deleted trials whose rows are going, leaf by leaf before its line of the ledger: they say nothing until all
// are gone (BuriedMismatchSql).
inline constexpr char kNotBeingBuriedSql[] =
    "trial_id not in (select b.trial_id from stepwell.trials b "
    "where b.deleted_time is not null and b.attempt_count > 0)";

// Of a deleted trial that is done nothing is left but its tombstone and those of its writers.
inline std::string BuriedMismatchSql() {
  std::string text =
      "select coalesce(string_agg(format('trial %s: %s in %s', trial_id, n, name), E'\n'), '') "
      "from stepwell.trials join (";
  const char* between = "";
  for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks", "recent", "recent_ticks",
                            "recent_rollups", "recent_rollup_ticks", "series", "gaps", "usage",
                            "attempts", "writer_origins", "traces", "trace_parts", "trace_usage"}) {
    absl::StrAppend(&text, between, "select trial_id, '", table,
                    "' as name, count(*) as n from stepwell.", table, " group by trial_id");
    between = " union all ";
  }
  absl::StrAppend(&text,
                  " union all select place_id, 'caps', count(*) from stepwell.caps where place = 2 "
                  "group by place_id) held using (trial_id) "
                  "where deleted_time is not null and attempt_count = 0");
  return text;
}

// The ledger says what the tables hold, in rows, samples and bytes ("held/ledger"): those of leaves that
// were given up and not emptied yet are not held any more. Between merges one may have come into such a
// leaf: what is new there and what was given up is told apart no more, until the next sweeps.
inline std::string LedgerMismatchSql(bool between_merges) {
  const char* compared = between_merges ? R"(
  and not exists (select from stepwell.swept_leaves s where not s.emptied
                  and (s.keep_class, s.received_day) = (coalesce(h.keep_class, u.keep_class),
                      coalesce(h.received_day, u.received_day))))"
                                        : "";
  return absl::StrCat(R"(
with rows as (
  select m.trial_id, m.received_day, m.keep_class, m.series_no, 1 as row_count, m.sample_count,
         octet_length(record_send(m)) - 2 - 4 * 27 as bytes, 0 as rollup_bytes
  from stepwell.metrics m
  where not exists (select from stepwell.swept_leaves s where not s.emptied
                    and (s.keep_class, s.received_day) = (m.keep_class, m.received_day))
  union all
  select r.trial_id, r.received_day, r.keep_class, r.series_no, 1, r.sample_count,
         octet_length(record_send(r)) - 2 - 4 * 29, 0 from stepwell.recent r
  union all
  select t.trial_id, t.received_day, t.keep_class, t.series_nos[1], 0, 0,
         octet_length(record_send(t)) - 2 - 4 * 28, 0 from stepwell.ticks t
  where not exists (select from stepwell.swept_leaves s where not s.emptied
                    and (s.keep_class, s.received_day) = (t.keep_class, t.received_day))
  union all
  select t.trial_id, t.received_day, t.keep_class, t.series_nos[1], 0, 0,
         octet_length(record_send(t)) - 2 - 4 * 31, 0 from stepwell.recent_ticks t
  union all
  select r.trial_id, r.received_day, r.keep_class, r.series_no, 0, 0, 0,
         octet_length(record_send(r)) - 2 - 4 * 76 from stepwell.rollups r
  where not exists (select from stepwell.swept_leaves s where not s.emptied and s.rollups_too
                    and (s.keep_class, s.received_day) = (r.keep_class, r.received_day))
  union all
  select t.trial_id, t.received_day, t.keep_class, t.first_series_no, 0, 0, 0,
         octet_length(record_send(t)) - 2 - 4 * 50 from stepwell.rollup_ticks t
  where not exists (select from stepwell.swept_leaves s where not s.emptied and s.rollups_too
                    and (s.keep_class, s.received_day) = (t.keep_class, t.received_day))
  union all
  select r.trial_id, r.received_day, r.keep_class, r.series_no, 0, 0, 0,
         octet_length(record_send(r)) - 2 - 4 * 76 from stepwell.recent_rollups r
  union all
  select t.trial_id, t.received_day, t.keep_class, t.first_series_no, 0, 0, 0,
         octet_length(record_send(t)) - 2 - 4 * 50 from stepwell.recent_rollup_ticks t
), held as (
  select r.trial_id, r.received_day, r.keep_class, s.metric_group, sum(row_count) as row_count,
         sum(sample_count) as sample_count, sum(bytes) as byte_count,
         sum(rollup_bytes) as rollup_byte_count
  from rows r join stepwell.series s on s.trial_id = r.trial_id and s.series_no = r.series_no
  group by 1, 2, 3, 4
)
select coalesce(string_agg(format('%s %s k%s %s: rows %s/%s samples %s/%s bytes %s/%s rollups %s/%s',
    trial_id, received_day, keep_class, metric_group, h.row_count, u.row_count, h.sample_count,
    u.sample_count, h.byte_count, u.byte_count, h.rollup_byte_count, u.rollup_byte_count), E'\n'), '')
from held h full join stepwell.usage u using (trial_id, received_day, keep_class, metric_group)
where (coalesce(h.row_count, 0), coalesce(h.sample_count, 0), coalesce(h.byte_count, 0),
       coalesce(h.rollup_byte_count, 0))
   is distinct from (coalesce(u.row_count, 0), coalesce(u.sample_count, 0),
                     coalesce(u.byte_count, 0), coalesce(u.rollup_byte_count, 0))
  and )",
                      kNotBeingBuriedSql, compared);
}

// No row without its ticks, no ticks without a row, no ticks twice. `more`: further columns of their key,
// each behind a comma.
inline std::string TicksMismatchSql(const std::string& rows, const std::string& ticks,
                                    const std::string& more) {
  const std::string key =
      absl::StrCat("keep_class, received_day, trial_id, writer_no, tick_no", more);
  return absl::StrCat(
      "select coalesce(string_agg(format('tick_no %s rows %s ticks %s', tick_no, r.has_rows, t.n), "
      "E'\\n'), '') from (select distinct ",
      key, ", 1 as has_rows from stepwell.", rows, ") r full join (select ", key,
      ", count(*) as n from stepwell.", ticks, " group by ", key, ") t using (", key,
      ") where r.has_rows is null or t.n is distinct from 1");
}

// When the last number of each bucket was, by what rollups say: decoded_rollups does not tell.
inline constexpr char kRollupLastTimesSql[] = R"(
  select r.trial_id, r.keep_class, r.received_day, r.series_no, r.writer_no,
         r.step_seconds::integer as step, u.bucket,
         max(u.bucket * r.step_seconds * 1000000 + u.last_offset - coalesce(u.lag, 0)) as last_us
  from (table stepwell.rollups union all table stepwell.recent_rollups) r
  join (table stepwell.rollup_ticks union all table stepwell.recent_rollup_ticks) t
    using (keep_class, received_day, trial_id, writer_no, tick_no, step_seconds),
  unnest(
    stepwell.pick_present(stepwell.rollup_integers(t.bucket_count, t.bucket_form, t.bucket_width,
      t.bucket_width2, t.bucket_base, t.bucket_factor, t.bucket_bits, t.bucket_bits2,
      t.bucket_dictionary), r.presence, r.bucket_count),
    stepwell.pick_present(stepwell.rollup_integers(t.bucket_count, t.last_offset_form,
      t.last_offset_width, t.last_offset_width2, t.last_offset_base, t.last_offset_factor,
      t.last_offset_bits, t.last_offset_bits2, t.last_offset_dictionary), r.presence,
      r.bucket_count),
    stepwell.rollup_integers(r.bucket_count, r.last_lag_form, r.last_lag_width, r.last_lag_width2,
      r.last_lag_base, r.last_lag_factor, r.last_lag_bits, r.last_lag_bits2,
      r.last_lag_dictionary),
    coalesce(
      stepwell.rollup_integers(r.bucket_count, r.count_form, r.count_width, r.count_width2,
        r.count_base, r.count_factor, r.count_bits, r.count_bits2, r.count_dictionary),
      stepwell.rollup_integers(t.bucket_count, t.tick_count_form, t.tick_count_width,
        t.tick_count_width2, t.tick_count_base, t.tick_count_factor, t.tick_count_bits,
        t.tick_count_bits2, t.tick_count_dictionary)),
    stepwell.rollup_integers(r.bucket_count, r.nan_count_form, r.nan_count_width,
      r.nan_count_width2, r.nan_count_base, r.nan_count_factor, r.nan_count_bits,
      r.nan_count_bits2, r.nan_count_dictionary)) u (bucket, last_offset, lag, n, nans)
  where u.n > coalesce(u.nans, 0)
  group by 1, 2, 3, 4, 5, 6, 7)";

// Rollups say what a recount of the samples says, per series and bucket of 10 and of 60 s. A cap
// may have removed samples whose rollups stay (kAtLeast): then rollups say no less. Leaves that
// were given up do not count here. Of several samples at the last time of a bucket, and of
// several rows that tell of one, any may be the last; the time of the last is exact.
enum class Rollups { kExact, kAtLeast };
inline std::string RollupMismatchSql(Rollups rollups) {
  const bool exact = rollups == Rollups::kExact;
  return absl::StrCat(
      R"(
with given_up as (select keep_class, received_day from stepwell.swept_leaves),
raw as materialized (
  select m.trial_id, m.keep_class, m.received_day, m.series_no, m.writer_no, u.t, u.v
  from (select * from stepwell.decoded_metrics offset 0) m, unnest(m.timestamps, m.values) u (t, v)
  where (m.keep_class, m.received_day) not in (select * from given_up)
), in_buckets as (
  select raw.*, s.step, floor(extract(epoch from t) / s.step)::bigint as bucket
  from raw, (values (10), (60)) s (step)
), ranked as (
  select b.*, v <> 'NaN' and 1 = rank() over (
           partition by trial_id, keep_class, received_day, series_no, writer_no, step, bucket,
                        v = 'NaN' order by t desc) as is_last
  from in_buckets b
), recount as (
  select trial_id, keep_class, received_day, series_no, writer_no, step, bucket, count(*) as n,
         count(*) filter (where v = 'NaN') as nans, min(v) filter (where v <> 'NaN') as low,
         max(v) filter (where v <> 'NaN') as high, sum(v) filter (where v <> 'NaN') as total,
         sum(abs(v)) filter (where v <> 'NaN') as size, array_agg(v) filter (where is_last) as lasts,
         max((extract(epoch from t) * 1000000)::bigint) filter (where is_last) as last_us
  from ranked group by 1, 2, 3, 4, 5, 6, 7
), told as (
  select r.trial_id, r.keep_class, r.received_day, r.series_no, r.writer_no,
         r.step_seconds::integer as step, (extract(epoch from u.t) / r.step_seconds)::bigint as bucket,
         sum(u.n) as n, sum(u.nans) as nans, min(u.low) filter (where u.n > u.nans) as low,
         max(u.high) filter (where u.n > u.nans) as high, sum(u.total) as total,
         array_agg(u.last) filter (where u.n > u.nans) as lasts
  from (select * from stepwell.decoded_rollups offset 0) r,
       unnest(r.starts, r.counts, r.nan_counts, r.mins, r.maxs, r.sums, r.lasts)
         u (t, n, nans, low, high, total, last)
  where (r.keep_class, r.received_day) not in (select * from given_up)
  group by 1, 2, 3, 4, 5, 6, 7
), told_times as ()",
      kRollupLastTimesSql, R"(), wrong as (
  select trial_id, format('series %s writer %s step %s bucket %s: count %s/%s min %s/%s max %s/%s sum %s/%s '
                'last %s/%s at %s/%s',
                series_no, writer_no, step, bucket, r.n, t.n, r.low, t.low, r.high, t.high, r.total,
                t.total, r.lasts, t.lasts, r.last_us, l.last_us) as text
  from recount r )",
      exact ? "full" : "left",
      " join told t using (trial_id, keep_class, received_day, series_no, writer_no, step, bucket) "
      "left join told_times l "
      "using (trial_id, keep_class, received_day, series_no, writer_no, step, bucket) where ",
      exact ? "(r.n, r.nans, r.low, r.high, r.last_us) "
              "is distinct from (t.n, t.nans, t.low, t.high, l.last_us) "
              "or abs(r.total - t.total) > 1e-9 * r.size or not r.lasts && t.lasts"
            : "t.n is null or t.n < r.n or t.low > r.low or t.high < r.high "
              "or coalesce(l.last_us, r.last_us - 1) < r.last_us "
              "or l.last_us = r.last_us and not r.lasts && t.lasts",
      R"()
select coalesce(string_agg(text, E'\n'), '')
from (select text from wrong where )",
      kNotBeingBuriedSql, " limit 20) t");
}

// Rollups of leaves whose samples were given up still count these, where they were not given up, too.
inline constexpr char kOutlivingRollupsMismatchSql[] = R"(
with told as (
  select r.keep_class, r.received_day, sum(u.n) as n
  from (select * from stepwell.decoded_rollups where step_seconds = 10 offset 0) r,
       unnest(r.counts) u (n)
  group by 1, 2
), counted as (
  select keep_class, received_day, sum(sample_count + removed_sample_count) as n
  from stepwell.usage group by 1, 2
)
select coalesce(string_agg(format('k%s %s: %s/%s', keep_class, received_day, t.n, c.n), E'\n'), '')
from stepwell.swept_leaves s
left join told t using (keep_class, received_day) left join counted c using (keep_class, received_day)
where not s.rollups_too and t.n is distinct from c.n)";

}  // namespace stepwell::testing
