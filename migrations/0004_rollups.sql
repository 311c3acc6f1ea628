-- 0004 rollups. Why: charts of days without reading samples, and peaks that outlive the raw rows.
-- Lock: usage, for a moment, once those who read it have ended; who comes meanwhile waits behind. Time:
-- under 100 ms, whatever usage holds. What was stored before has no rollups, nor has what a master of
-- an older release still merges: charts of that go on reading samples (has_rollups).

-- The statistics of each series per bucket of step_seconds (10 or 60), beside the rows of metrics
-- and ticks that a merge makes, in leaves of the same days and classes. Bucket b covers the times
-- [b * step_seconds, (b + 1) * step_seconds) since 1970. Vectors are those of docs/codec.md, one
-- element per bucket; since they are short and many, NULL stands for what most have: factor 1, width2
-- 0, divisor_exponent 0. What all series of a stretch share: the buckets themselves, how many ticks
-- each has, how long after its start the last one is (microseconds), and their batches (-1 = none).
CREATE TABLE stepwell.rollup_ticks (
  trial_id bigint NOT NULL,
  tick_no bigint NOT NULL,
  first_time_us bigint NOT NULL,
  last_time_us bigint NOT NULL,
  bucket_base bigint NOT NULL, bucket_factor bigint,
  tick_count_base bigint NOT NULL, tick_count_factor bigint,
  last_offset_base bigint NOT NULL, last_offset_factor bigint,
  first_batch_base bigint NOT NULL, first_batch_factor bigint,
  last_batch_base bigint NOT NULL, last_batch_factor bigint,
  writer_no integer NOT NULL,
  bucket_count integer NOT NULL,
  received_day date NOT NULL,
  keep_class smallint NOT NULL,
  step_seconds smallint NOT NULL,
  bucket_form smallint NOT NULL, bucket_width smallint NOT NULL, bucket_width2 smallint,
  tick_count_form smallint NOT NULL, tick_count_width smallint NOT NULL,
  tick_count_width2 smallint,
  last_offset_form smallint NOT NULL, last_offset_width smallint NOT NULL,
  last_offset_width2 smallint,
  first_batch_form smallint NOT NULL, first_batch_width smallint NOT NULL,
  first_batch_width2 smallint,
  last_batch_form smallint NOT NULL, last_batch_width smallint NOT NULL,
  last_batch_width2 smallint,
  bucket_bits varbit, bucket_bits2 varbit, bucket_dictionary bigint[],
  tick_count_bits varbit, tick_count_bits2 varbit, tick_count_dictionary bigint[],
  last_offset_bits varbit, last_offset_bits2 varbit, last_offset_dictionary bigint[],
  first_batch_bits varbit, first_batch_bits2 varbit, first_batch_dictionary bigint[],
  last_batch_bits varbit, last_batch_bits2 varbit, last_batch_dictionary bigint[]
) PARTITION BY RANGE (keep_class, received_day);
ALTER TABLE stepwell.rollup_ticks
  ALTER COLUMN bucket_bits SET STORAGE EXTERNAL, ALTER COLUMN bucket_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN tick_count_bits SET STORAGE EXTERNAL,
  ALTER COLUMN tick_count_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN last_offset_bits SET STORAGE EXTERNAL,
  ALTER COLUMN last_offset_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN first_batch_bits SET STORAGE EXTERNAL,
  ALTER COLUMN first_batch_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN last_batch_bits SET STORAGE EXTERNAL,
  ALTER COLUMN last_batch_bits2 SET STORAGE EXTERNAL;
CREATE INDEX rollup_ticks_by_writer
  ON stepwell.rollup_ticks (trial_id, writer_no, tick_no, step_seconds);

-- One row per series, stretch and step. min, max, sum and last are over the samples that are not NaN
-- (0 where a bucket has none), count is of all samples. NULL in max_form, sum_form or last_form: bit
-- for bit the mins. NULL in count_form: the ticks' counts; nan_count_form: no NaN; last_lag_form: each
-- last is of its bucket's last tick, else so many microseconds before it. A sum of decimals that share
-- a divisor is exact and rounded once. Bits of `relative`: 1 max, 2 sum, 4 last are counted from the
-- mins: under the divisor of the mins, k = k of min + x; for sums k = (count - nan_count) * k of min + x.
CREATE TABLE stepwell.rollups (
  trial_id bigint NOT NULL,
  tick_no bigint NOT NULL,
  first_time_us bigint NOT NULL,
  last_time_us bigint NOT NULL,
  min_base bigint NOT NULL, min_factor bigint,
  max_base bigint, max_factor bigint,
  sum_base bigint, sum_factor bigint,
  last_base bigint, last_factor bigint,
  count_base bigint, count_factor bigint,
  nan_count_base bigint, nan_count_factor bigint,
  last_lag_base bigint, last_lag_factor bigint,
  series_no integer NOT NULL,
  writer_no integer NOT NULL,
  -- Those in which the series has a sample.
  bucket_count integer NOT NULL,
  received_day date NOT NULL,
  keep_class smallint NOT NULL,
  step_seconds smallint NOT NULL,
  relative smallint NOT NULL,
  min_form smallint NOT NULL, min_width smallint NOT NULL, min_width2 smallint,
  min_divisor_exponent smallint,
  max_form smallint, max_width smallint, max_width2 smallint, max_divisor_exponent smallint,
  sum_form smallint, sum_width smallint, sum_width2 smallint, sum_divisor_exponent smallint,
  last_form smallint, last_width smallint, last_width2 smallint, last_divisor_exponent smallint,
  count_form smallint, count_width smallint, count_width2 smallint,
  nan_count_form smallint, nan_count_width smallint, nan_count_width2 smallint,
  last_lag_form smallint, last_lag_width smallint, last_lag_width2 smallint,
  min_bits varbit, min_bits2 varbit, min_dictionary bigint[], min_raw float8[],
  max_bits varbit, max_bits2 varbit, max_dictionary bigint[], max_raw float8[],
  sum_bits varbit, sum_bits2 varbit, sum_dictionary bigint[], sum_raw float8[],
  last_bits varbit, last_bits2 varbit, last_dictionary bigint[], last_raw float8[],
  count_bits varbit, count_bits2 varbit, count_dictionary bigint[],
  nan_count_bits varbit, nan_count_bits2 varbit, nan_count_dictionary bigint[],
  last_lag_bits varbit, last_lag_bits2 varbit, last_lag_dictionary bigint[],
  -- One bit per bucket of the rollup_ticks row, 1 = the series has a sample; NULL = all have.
  presence varbit
) PARTITION BY RANGE (keep_class, received_day);
ALTER TABLE stepwell.rollups
  ALTER COLUMN min_bits SET STORAGE EXTERNAL, ALTER COLUMN min_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN max_bits SET STORAGE EXTERNAL, ALTER COLUMN max_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN sum_bits SET STORAGE EXTERNAL, ALTER COLUMN sum_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN last_bits SET STORAGE EXTERNAL, ALTER COLUMN last_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN count_bits SET STORAGE EXTERNAL, ALTER COLUMN count_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN nan_count_bits SET STORAGE EXTERNAL,
  ALTER COLUMN nan_count_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN last_lag_bits SET STORAGE EXTERNAL, ALTER COLUMN last_lag_bits2 SET STORAGE EXTERNAL,
  ALTER COLUMN presence SET STORAGE EXTERNAL;
CREATE INDEX rollups_by_series
  ON stepwell.rollups (trial_id, series_no, step_seconds, first_time_us);

ALTER TABLE stepwell.usage
  -- Of rollups and their ticks; byte_count stays that of samples.
  ADD COLUMN rollup_byte_count bigint NOT NULL DEFAULT 0,
  -- False: some of its merged rows may have none. True is said by who makes them.
  ADD COLUMN has_rollups boolean NOT NULL DEFAULT false;

-- The integers of a vector of rollups or rollup_ticks; NULL where its form is.
CREATE FUNCTION stepwell.rollup_integers(
  bucket_count integer, form smallint, width smallint, width2 smallint, base bigint, factor bigint,
  bits varbit, bits2 varbit, dictionary bigint[]
) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN form IS NOT NULL THEN stepwell.decode_integers(bucket_count, form, width,
    coalesce(width2, 0::smallint), base, coalesce(factor, 1), bits, bits2, dictionary) END
$$;

-- The values of a vector of rollups; NULL where its form is.
CREATE FUNCTION stepwell.rollup_values(
  bucket_count integer, form smallint, width smallint, width2 smallint, divisor_exponent smallint,
  base bigint, factor bigint, bits varbit, bits2 varbit, dictionary bigint[], raw float8[]
) RETURNS float8[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN form IS NOT NULL THEN stepwell.decode_values(bucket_count, form, width,
    coalesce(width2, 0::smallint), coalesce(divisor_exponent, 0::smallint), base,
    coalesce(factor, 1), bits, bits2, dictionary, raw) END
$$;

-- The values of a vector that is counted from the mins, `summands` times each (NULL = once). The
-- divisor is that of the mins: dividing the sums of the integers gives them.
CREATE FUNCTION stepwell.rollup_above(
  mins bigint[], summands bigint[], above bigint[], divisor_exponent smallint
) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  e CONSTANT smallint := coalesce(divisor_exponent, 0);
  divisor CONSTANT float8 := CASE WHEN e >= 0 THEN ('1e' || e)::float8 ELSE power(2::float8, -e) END;
BEGIN
  RETURN ARRAY(
    SELECT (u.low * coalesce(u.n, 1) + u.x)::float8 / divisor
    FROM unnest(mins, summands, above) WITH ORDINALITY AS u (low, n, x, i) ORDER BY i);
END $$;

-- Rollups with their ticks and names, decoded. `starts` are the beginnings of the buckets.
CREATE VIEW stepwell.decoded_rollups AS
SELECT r.keep_class, r.received_day, r.trial_id, r.series_no, r.writer_no, w.attempt,
  s.metric_group, s.name, s.labels, r.step_seconds, r.first_time_us, r.last_time_us,
  stepwell.to_timestamps(ARRAY(
    SELECT b * r.step_seconds * 1000000 FROM unnest(stepwell.pick_present(
      stepwell.rollup_integers(t.bucket_count, t.bucket_form, t.bucket_width, t.bucket_width2,
        t.bucket_base, t.bucket_factor, t.bucket_bits, t.bucket_bits2, t.bucket_dictionary),
      r.presence)) WITH ORDINALITY AS u (b, i) ORDER BY i)) AS starts,
  c.counts, c.nan_counts, low.mins,
  CASE
    WHEN r.max_form IS NULL THEN low.mins
    WHEN r.relative & 1 = 1 THEN stepwell.rollup_above(low.integers, NULL,
      stepwell.rollup_integers(r.bucket_count, r.max_form, r.max_width, r.max_width2, r.max_base,
        r.max_factor, r.max_bits, r.max_bits2, r.max_dictionary), r.min_divisor_exponent)
    ELSE stepwell.rollup_values(r.bucket_count, r.max_form, r.max_width, r.max_width2,
      r.max_divisor_exponent, r.max_base, r.max_factor, r.max_bits, r.max_bits2, r.max_dictionary,
      r.max_raw)
  END AS maxs,
  CASE
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
    WHEN r.last_form IS NULL THEN low.mins
    WHEN r.relative & 4 = 4 THEN stepwell.rollup_above(low.integers, NULL,
      stepwell.rollup_integers(r.bucket_count, r.last_form, r.last_width, r.last_width2,
        r.last_base, r.last_factor, r.last_bits, r.last_bits2, r.last_dictionary),
      r.min_divisor_exponent)
    ELSE stepwell.rollup_values(r.bucket_count, r.last_form, r.last_width, r.last_width2,
      r.last_divisor_exponent, r.last_base, r.last_factor, r.last_bits, r.last_bits2,
      r.last_dictionary, r.last_raw)
  END AS lasts
FROM stepwell.rollups r
JOIN stepwell.rollup_ticks t
  USING (keep_class, received_day, trial_id, writer_no, tick_no, step_seconds)
JOIN stepwell.series s USING (trial_id, series_no)
JOIN stepwell.writers w USING (trial_id, writer_no)
CROSS JOIN LATERAL (SELECT
  coalesce(
    stepwell.rollup_integers(r.bucket_count, r.count_form, r.count_width, r.count_width2,
      r.count_base, r.count_factor, r.count_bits, r.count_bits2, r.count_dictionary),
    stepwell.rollup_integers(t.bucket_count, t.tick_count_form, t.tick_count_width,
      t.tick_count_width2, t.tick_count_base, t.tick_count_factor, t.tick_count_bits,
      t.tick_count_bits2, t.tick_count_dictionary)) AS counts,
  coalesce(
    stepwell.rollup_integers(r.bucket_count, r.nan_count_form, r.nan_count_width,
      r.nan_count_width2, r.nan_count_base, r.nan_count_factor, r.nan_count_bits,
      r.nan_count_bits2, r.nan_count_dictionary),
    array_fill(0::bigint, ARRAY[r.bucket_count])) AS nan_counts
) c
CROSS JOIN LATERAL (SELECT
  -- Integers only where something is counted from them: a vector may be raw.
  CASE WHEN r.relative <> 0 THEN stepwell.rollup_integers(r.bucket_count, r.min_form, r.min_width,
    r.min_width2, r.min_base, r.min_factor, r.min_bits, r.min_bits2, r.min_dictionary)
  END AS integers,
  stepwell.rollup_values(r.bucket_count, r.min_form, r.min_width, r.min_width2,
    r.min_divisor_exponent, r.min_base, r.min_factor, r.min_bits, r.min_bits2, r.min_dictionary,
    r.min_raw) AS mins
) low;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA stepwell TO stepwell_read;
    GRANT SELECT ON stepwell.decoded_rollups TO stepwell_read;
  END IF;
END $$;
