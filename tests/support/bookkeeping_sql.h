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

// Rollups say what a recount of the samples says, per series and bucket of 10 and of 60 s. A cap may have
// removed samples whose rollups stay (kAtLeast): then rollups say no less. Leaves that were given up do
// not count here.
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
), recount as (
  select trial_id, keep_class, received_day, series_no, writer_no, s.step,
         floor(extract(epoch from t) / s.step)::bigint as bucket, count(*) as n,
         count(*) filter (where v = 'NaN') as nans, min(v) filter (where v <> 'NaN') as low,
         max(v) filter (where v <> 'NaN') as high, sum(v) filter (where v <> 'NaN') as total,
         sum(abs(v)) filter (where v <> 'NaN') as size
  from raw, (values (10), (60)) s (step) group by 1, 2, 3, 4, 5, 6, 7
), told as (
  select r.trial_id, r.keep_class, r.received_day, r.series_no, r.writer_no,
         r.step_seconds::integer as step, (extract(epoch from u.t) / r.step_seconds)::bigint as bucket,
         sum(u.n) as n, sum(u.nans) as nans, min(u.low) filter (where u.n > u.nans) as low,
         max(u.high) filter (where u.n > u.nans) as high, sum(u.total) as total
  from (select * from stepwell.decoded_rollups offset 0) r,
       unnest(r.starts, r.counts, r.nan_counts, r.mins, r.maxs, r.sums)
         u (t, n, nans, low, high, total)
  where (r.keep_class, r.received_day) not in (select * from given_up)
  group by 1, 2, 3, 4, 5, 6, 7
), wrong as (
  select trial_id, format('series %s writer %s step %s bucket %s: count %s/%s min %s/%s max %s/%s sum %s/%s',
                series_no, writer_no, step, bucket, r.n, t.n, r.low, t.low, r.high, t.high, r.total,
                t.total) as text
  from recount r )",
      exact ? "full" : "left",
      " join told t using (trial_id, keep_class, received_day, series_no, writer_no, step, bucket) "
      "where ",
      exact ? "(r.n, r.nans, r.low, r.high) is distinct from (t.n, t.nans, t.low, t.high) "
              "or abs(r.total - t.total) > 1e-9 * r.size"
            : "t.n is null or t.n < r.n or t.low > r.low or t.high < r.high",
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
