-- 0010 recent rollups. Why: merges joined narrow rows of rollups by a DELETE in their leaf, all day long, and
-- left the dead rows there. Rows that are not full wait in tables of their own instead, which go by TRUNCATE;
-- a row in a leaf is not touched again.
-- Lock: brief on masters; decoded_rollups, once those who read it have ended. Time: under 100 ms, whatever
-- the database holds. Narrow rows that lie in leaves already stay there, and are read as before.

-- Rows of rollups that are not full, with their grids: those of a received day lie in the segment of that
-- day's number (since 1970) modulo 4. Merges take them out as they join them; what is left when the day is
-- over moves into the day's leaf.
CREATE TABLE stepwell.recent_rollups_0 (LIKE stepwell.rollups INCLUDING STORAGE) WITH (toast_tuple_target = 8160);
CREATE TABLE stepwell.recent_rollups_1 (LIKE stepwell.rollups INCLUDING STORAGE) WITH (toast_tuple_target = 8160);
CREATE TABLE stepwell.recent_rollups_2 (LIKE stepwell.rollups INCLUDING STORAGE) WITH (toast_tuple_target = 8160);
CREATE TABLE stepwell.recent_rollups_3 (LIKE stepwell.rollups INCLUDING STORAGE) WITH (toast_tuple_target = 8160);

CREATE TABLE stepwell.recent_rollup_ticks_0 (LIKE stepwell.rollup_ticks INCLUDING STORAGE);
CREATE TABLE stepwell.recent_rollup_ticks_1 (LIKE stepwell.rollup_ticks INCLUDING STORAGE);
CREATE TABLE stepwell.recent_rollup_ticks_2 (LIKE stepwell.rollup_ticks INCLUDING STORAGE);
CREATE TABLE stepwell.recent_rollup_ticks_3 (LIKE stepwell.rollup_ticks INCLUDING STORAGE);

CREATE INDEX ON stepwell.recent_rollups_0 (trial_id, series_no, step_seconds, first_time_us);
CREATE INDEX ON stepwell.recent_rollups_0 (trial_id, writer_no, tick_no);
CREATE INDEX ON stepwell.recent_rollup_ticks_0 (trial_id, writer_no, tick_no, step_seconds);
CREATE INDEX ON stepwell.recent_rollups_1 (trial_id, series_no, step_seconds, first_time_us);
CREATE INDEX ON stepwell.recent_rollups_1 (trial_id, writer_no, tick_no);
CREATE INDEX ON stepwell.recent_rollup_ticks_1 (trial_id, writer_no, tick_no, step_seconds);
CREATE INDEX ON stepwell.recent_rollups_2 (trial_id, series_no, step_seconds, first_time_us);
CREATE INDEX ON stepwell.recent_rollups_2 (trial_id, writer_no, tick_no);
CREATE INDEX ON stepwell.recent_rollup_ticks_2 (trial_id, writer_no, tick_no, step_seconds);
CREATE INDEX ON stepwell.recent_rollups_3 (trial_id, series_no, step_seconds, first_time_us);
CREATE INDEX ON stepwell.recent_rollups_3 (trial_id, writer_no, tick_no);
CREATE INDEX ON stepwell.recent_rollup_ticks_3 (trial_id, writer_no, tick_no, step_seconds);

CREATE VIEW stepwell.recent_rollups AS
  TABLE stepwell.recent_rollups_0
  UNION ALL TABLE stepwell.recent_rollups_1
  UNION ALL TABLE stepwell.recent_rollups_2
  UNION ALL TABLE stepwell.recent_rollups_3;
CREATE VIEW stepwell.recent_rollup_ticks AS
  TABLE stepwell.recent_rollup_ticks_0
  UNION ALL TABLE stepwell.recent_rollup_ticks_1
  UNION ALL TABLE stepwell.recent_rollup_ticks_2
  UNION ALL TABLE stepwell.recent_rollup_ticks_3;

-- As before, with the rows that are not full yet.
CREATE OR REPLACE VIEW stepwell.decoded_rollups AS
SELECT r.keep_class, r.received_day, r.trial_id, r.series_no, r.writer_no, w.attempt,
  s.metric_group, s.name, s.labels, r.step_seconds, r.first_time_us, r.last_time_us,
  CASE WHEN own.ticks THEN stepwell.to_timestamps(ARRAY(
    SELECT b * r.step_seconds * 1000000 FROM unnest(stepwell.pick_present(
      stepwell.rollup_integers(t.bucket_count, t.bucket_form, t.bucket_width, t.bucket_width2,
        t.bucket_base, t.bucket_factor, t.bucket_bits, t.bucket_bits2, t.bucket_dictionary),
      r.presence, r.bucket_count)) WITH ORDINALITY AS u (b, i) ORDER BY i))
  END AS starts,
  c.counts, c.nan_counts, low.mins,
  CASE
    WHEN NOT own.ticks THEN NULL
    WHEN r.max_form IS NULL THEN low.mins
    WHEN r.relative & 1 = 1 THEN stepwell.rollup_above(low.integers, NULL,
      stepwell.rollup_integers(r.bucket_count, r.max_form, r.max_width, r.max_width2, r.max_base,
        r.max_factor, r.max_bits, r.max_bits2, r.max_dictionary), r.min_divisor_exponent)
    ELSE stepwell.rollup_values(r.bucket_count, r.max_form, r.max_width, r.max_width2,
      r.max_divisor_exponent, r.max_base, r.max_factor, r.max_bits, r.max_bits2, r.max_dictionary,
      r.max_raw)
  END AS maxs,
  CASE
    WHEN NOT own.ticks THEN NULL
    WHEN r.sum_form IS NULL THEN low.mins
    WHEN r.relative & 2 = 2 THEN stepwell.rollup_above(low.integers,
      ARRAY(SELECT n - nans FROM unnest(c.counts, c.nan_counts) WITH ORDINALITY AS u (n, nans, i)
            ORDER BY i),
      stepwell.rollup_integers(r.bucket_count, r.sum_form, r.sum_width, r.sum_width2, r.sum_base,
        r.sum_factor, r.sum_bits, r.sum_bits2, r.sum_dictionary), r.min_divisor_exponent)
    ELSE stepwell.rollup_values(r.bucket_count, r.sum_form, r.sum_width, r.sum_width2,
      r.sum_divisor_exponent, r.sum_base, r.sum_factor, r.sum_bits, r.sum_bits2, r.sum_dictionary,
      r.sum_raw)
  END AS sums,
  CASE
    WHEN NOT own.ticks THEN NULL
    WHEN r.last_form IS NULL THEN low.mins
    WHEN r.relative & 4 = 4 THEN stepwell.rollup_above(low.integers, NULL,
      stepwell.rollup_integers(r.bucket_count, r.last_form, r.last_width, r.last_width2,
        r.last_base, r.last_factor, r.last_bits, r.last_bits2, r.last_dictionary),
      r.min_divisor_exponent)
    ELSE stepwell.rollup_values(r.bucket_count, r.last_form, r.last_width, r.last_width2,
      r.last_divisor_exponent, r.last_base, r.last_factor, r.last_bits, r.last_bits2,
      r.last_dictionary, r.last_raw)
  END AS lasts
FROM (TABLE stepwell.rollups UNION ALL TABLE stepwell.recent_rollups) r
JOIN (TABLE stepwell.rollup_ticks UNION ALL TABLE stepwell.recent_rollup_ticks) t
  USING (keep_class, received_day, trial_id, writer_no, tick_no, step_seconds)
JOIN stepwell.series s USING (trial_id, series_no)
JOIN stepwell.writers w USING (trial_id, writer_no)
CROSS JOIN LATERAL (SELECT
  (r.keep_class, r.received_day, r.trial_id, r.writer_no, r.tick_no, r.step_seconds, r.series_no)
  = (t.keep_class, t.received_day, t.trial_id, t.writer_no, t.tick_no, t.step_seconds, s.series_no)
    AS ticks
) own
CROSS JOIN LATERAL (SELECT
  CASE WHEN own.ticks THEN coalesce(
    stepwell.rollup_integers(r.bucket_count, r.count_form, r.count_width, r.count_width2,
      r.count_base, r.count_factor, r.count_bits, r.count_bits2, r.count_dictionary),
    stepwell.rollup_integers(t.bucket_count, t.tick_count_form, t.tick_count_width,
      t.tick_count_width2, t.tick_count_base, t.tick_count_factor, t.tick_count_bits,
      t.tick_count_bits2, t.tick_count_dictionary)) END AS counts,
  CASE WHEN own.ticks THEN coalesce(
    stepwell.rollup_integers(r.bucket_count, r.nan_count_form, r.nan_count_width,
      r.nan_count_width2, r.nan_count_base, r.nan_count_factor, r.nan_count_bits,
      r.nan_count_bits2, r.nan_count_dictionary),
    array_fill(0::bigint, ARRAY[r.bucket_count])) END AS nan_counts
) c
CROSS JOIN LATERAL (SELECT
  -- Integers only where something is counted from them: a vector may be raw.
  CASE WHEN own.ticks AND r.relative <> 0 THEN stepwell.rollup_integers(r.bucket_count, r.min_form, r.min_width,
    r.min_width2, r.min_base, r.min_factor, r.min_bits, r.min_bits2, r.min_dictionary)
  END AS integers,
  CASE WHEN own.ticks THEN stepwell.rollup_values(r.bucket_count, r.min_form, r.min_width,
    r.min_width2, r.min_divisor_exponent, r.min_base, r.min_factor, r.min_bits, r.min_bits2,
    r.min_dictionary, r.min_raw) END AS mins
) low;

-- A master of before this migration does not read these tables. One that owns the database goes on, for
-- nothing is in them yet; but it does not take over any more, for it would say 9.
LOCK TABLE stepwell.masters IN ACCESS EXCLUSIVE MODE;  -- before a row of it, as whoever renews it would deadlock
UPDATE stepwell.masters SET migration = 10;
ALTER TABLE stepwell.masters ADD CONSTRAINT masters_migration CHECK (migration >= 10);
