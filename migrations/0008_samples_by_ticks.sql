-- 0008 samples by ticks. Why: samples() decoded the ticks that series share once for each series; a row
-- whose columns contradict each other was read in places where C++ refuses it; rows of the decoded views,
-- unnested in young tables, were decoded with the ticks of other rows.
-- Lock: brief, of the functions and of the views decoded_*; who reads one of these meanwhile waits. 10M
-- rows: at once.
-- Elements go one by one where unnest() stands in a select list; in FROM they are all written down first.

-- As in 0002, but that a dictionary with holes, or an index of more bits than PostgreSQL's, is refused.
CREATE OR REPLACE FUNCTION stepwell.decode_integers(
  sample_count integer, form smallint, width smallint, width2 smallint, base bigint, factor bigint,
  bits varbit, bits2 varbit, dictionary bigint[]
) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  n CONSTANT integer := sample_count;
  w CONSTANT integer := width;
  w2 CONSTANT integer := width2;
  b CONSTANT varbit := coalesce(bits, B'') || B'';
  c CONSTANT varbit := coalesce(bits2, B'') || B'';
  step CONSTANT bigint := coalesce(dictionary[1], 0);  -- of a line; of delta, the smallest
  k bigint[];   -- the answer
  x bigint;
  due integer;  -- how many integers `bits` must hold
  used integer := 0;
  filled integer := 0;
  ends integer;
BEGIN
  IF (n BETWEEN 0 AND 1048576 AND w BETWEEN 0 AND 63 AND w2 BETWEEN 0 AND 31) IS NOT TRUE THEN
    RAISE 'vector of form %: % samples, width %, width2 %: out of range', form, n, w, w2
      USING ERRCODE = 'data_corrupted';
  END IF;
  IF array_ndims(dictionary) <> 1 OR array_lower(dictionary, 1) <> 1
     OR array_position(dictionary, NULL) IS NOT NULL THEN
    RAISE 'vector of form %: the dictionary is not one list without NULL', form
      USING ERRCODE = 'data_corrupted';
  END IF;
  due := CASE form
    WHEN 0 THEN n WHEN 1 THEN n - 1 WHEN 6 THEN n
    WHEN 2 THEN CASE w2 WHEN 0 THEN n ELSE length(c) / w2 END
    WHEN 3 THEN bit_count(c)
    WHEN 5 THEN CASE WHEN w <= 32 THEN n END
  END;
  IF due IS NULL OR due < 0 OR length(b) <> due::bigint * w
     OR (form = 2 AND length(c) <> due::bigint * w2) OR (form = 3 AND length(c) <> n)
     OR (form IN (1, 6) AND cardinality(dictionary) IS DISTINCT FROM 1) THEN
    RAISE 'vector of form %: % bits and % bits2 are not % samples of width % and %',
      form, length(b), length(c), n, w, w2 USING ERRCODE = 'data_corrupted';
  END IF;
  k := array_fill(base, ARRAY[n]);
  IF form = 0 AND w > 0 THEN
    FOR i IN 1..n LOOP
      k[i] := base + factor * substring(b FROM i * w - w + 1 FOR w)::bigint;
    END LOOP;
  ELSIF form = 1 THEN
    x := 0;
    FOR i IN 2..n LOOP
      x := x + (step + substring(b FROM (i - 2) * w + 1 FOR w)::bigint);
      k[i] := base + factor * x;
    END LOOP;
  ELSIF form = 2 THEN
    FOR i IN 1..due LOOP
      x := base + factor * substring(b FROM i * w - w + 1 FOR w)::bigint;
      ends := filled + 1 + substring(c FROM i * w2 - w2 + 1 FOR w2)::integer;
      EXIT WHEN ends > n;
      FOR j IN filled + 1 .. ends LOOP
        k[j] := x;
      END LOOP;
      filled := ends;
    END LOOP;
    IF filled <> n OR ends > n THEN
      RAISE 'vector of form 2: runs do not end at sample %', n USING ERRCODE = 'data_corrupted';
    END IF;
  ELSIF form = 3 THEN
    FOR i IN 1..n LOOP
      IF get_bit(c, i - 1) = 0 THEN
        k[i] := 0;
      ELSE
        k[i] := base + factor * substring(b FROM used * w + 1 FOR w)::bigint;
        used := used + 1;
      END IF;
    END LOOP;
  ELSIF form = 5 THEN
    FOR i IN 1..n LOOP
      k[i] := dictionary[1 + substring(b FROM i * w - w + 1 FOR w)::integer];
    END LOOP;
    IF array_position(k, NULL) IS NOT NULL THEN
      RAISE 'vector of form 5: index of sample % is beyond a dictionary of %',
        array_position(k, NULL), coalesce(cardinality(dictionary), 0)
        USING ERRCODE = 'data_corrupted';
    END IF;
  ELSIF form = 6 THEN
    FOR i IN 1..n LOOP
      k[i] := base + (i - 1) * step + factor * substring(b FROM i * w - w + 1 FOR w)::bigint;
    END LOOP;
  END IF;
  RETURN k;
END $$;

-- As in 0002, but that an index beyond the doubles of a dictionary, doubles with holes, and more of them
-- than any vector has, are refused.
CREATE OR REPLACE FUNCTION stepwell.decode_values(
  sample_count integer, form smallint, width smallint, width2 smallint, divisor_exponent smallint,
  base bigint, factor bigint, bits varbit, bits2 varbit, dictionary bigint[], raw float8[]
) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  raw_count CONSTANT integer := coalesce(cardinality(raw), 0);
  k bigint[];
  divisor float8;
BEGIN
  IF array_ndims(raw) <> 1 OR array_lower(raw, 1) <> 1 OR array_position(raw, NULL) IS NOT NULL THEN
    RAISE 'vector of form %: raw is not one list without NULL', form USING ERRCODE = 'data_corrupted';
  END IF;
  IF form = 4 THEN
    IF raw_count IS DISTINCT FROM sample_count OR raw_count > 1048576 THEN
      RAISE 'vector of form 4: raw has % elements for % samples, at most 1048576 are allowed',
        raw_count, sample_count USING ERRCODE = 'data_corrupted';
    END IF;
    RETURN coalesce(raw, '{}');
  END IF;
  -- Indexes into raw where the dictionary is empty: integers cannot say NaN.
  IF form = 5 AND raw_count > 0 AND coalesce(cardinality(dictionary), 0) = 0 THEN
    k := stepwell.decode_integers(sample_count, 0::smallint, width, width2, 0, 1, bits, bits2, NULL);
    IF raw_count <= ANY (k) THEN
      RAISE 'vector of form 5: index of sample % is beyond a dictionary of %',
        (SELECT min(i) FROM unnest(k) WITH ORDINALITY AS u (index, i) WHERE index >= raw_count),
        raw_count USING ERRCODE = 'data_corrupted';
    END IF;
    RETURN ARRAY(SELECT raw[1 + unnest(k)::integer]);
  END IF;
  k := stepwell.decode_integers(
    sample_count, form, width, width2, base, factor, bits, bits2, dictionary);
  IF divisor_exponent = 0 THEN
    RETURN k::float8[];
  ELSIF divisor_exponent BETWEEN 1 AND 22 THEN
    divisor := ('1e' || divisor_exponent)::float8;
  ELSIF divisor_exponent BETWEEN -1022 AND -1 THEN
    divisor := power(2::float8, -divisor_exponent);
  ELSE
    RAISE 'vector of form %: divisor_exponent % is out of range', form, divisor_exponent
      USING ERRCODE = 'data_corrupted';
  END IF;
  RETURN ARRAY(SELECT unnest(k)::float8 / divisor);
END $$;

-- The elements whose bit in `presence` is 1, all of them where it is NULL: as many as the row says.
CREATE FUNCTION stepwell.pick_present(elements anyarray, presence varbit, sample_count integer)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  n CONSTANT integer := cardinality(elements);
  p CONSTANT varbit := presence || B'';
BEGIN
  IF (coalesce(length(p), n) = n AND coalesce(bit_count(p), n) = sample_count) IS NOT TRUE THEN
    RAISE 'row of % samples: presence has % ones in % bits for % ticks',
      sample_count, coalesce(bit_count(p), n), coalesce(length(p), n), n
      USING ERRCODE = 'data_corrupted';
  END IF;
  IF p IS NULL THEN
    RETURN elements;
  END IF;
  RETURN ARRAY(
    SELECT elements[g.i] FROM (SELECT generate_series(1, n) AS i) AS g WHERE get_bit(p, g.i - 1) = 1);
END $$;

-- As in 0002: whole hours go apart, since an interval times a number is exact up to 2^53 microseconds
-- only. Of a vector that spans no more than that, the hours of its first time are enough.
CREATE OR REPLACE FUNCTION stepwell.to_timestamps(times_us bigint[])
RETURNS timestamptz[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  epoch CONSTANT timestamptz := 'epoch';
  hour CONSTANT interval := '1 hour';
  us CONSTANT interval := '1 microsecond';
  span CONSTANT bigint := 9007199254740992;
  first_us CONSTANT bigint := times_us[1];
  first CONSTANT timestamptz := epoch + first_us / 3600000000 * hour + first_us % 3600000000 * us;
BEGIN
  -- Far from the ends of bigint, too, so that no difference overflows.
  IF abs(first_us / 1000) < span AND first_us - span <= ALL (times_us)
     AND first_us + span >= ALL (times_us) THEN
    RETURN ARRAY(SELECT first + (unnest(times_us) - first_us) * us);
  END IF;
  RETURN ARRAY(
    SELECT epoch + t / 3600000000 * hour + t % 3600000000 * us FROM unnest(times_us) AS t);
END $$;

-- -1, no batch, is NULL for people.
CREATE OR REPLACE FUNCTION stepwell.to_batches(batches bigint[])
RETURNS integer[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF -1 > ANY (batches) THEN
    RAISE 'a batch is below -1' USING ERRCODE = 'data_corrupted';
  END IF;
  RETURN array_replace(batches::integer[], -1, NULL);
END $$;

-- encoded_metrics and encoded_recent: rows of either table with their ticks and names, as they lie there:
-- what samples() and the decoded views read. has_own_ticks: the planner may decode a row of the views
-- with ticks that its join leaves out later; nobody should. One text for both.
DO $do$
DECLARE
  source record;
BEGIN
  FOR source IN
    SELECT rows_table, ticks_table, join_columns,
      regexp_replace(join_columns, '(\w+)', 'm.\1', 'g') AS row_columns,
      regexp_replace(join_columns, '(\w+)', 't.\1', 'g') AS ticks_columns
    FROM (VALUES
      ('metrics', 'ticks', 'keep_class, received_day, trial_id, writer_no, tick_no'),
      ('recent', 'recent_ticks', 'trial_id, writer_no, tick_no')
    ) AS v (rows_table, ticks_table, join_columns)
  LOOP
    EXECUTE format($view$
      CREATE VIEW stepwell.encoded_%1$s AS
      SELECT m.keep_class, m.received_day, m.trial_id, m.series_no, m.writer_no, m.tick_no,
        w.attempt, s.metric_group, s.name, s.labels, m.first_time_us, m.last_time_us,
        m.sample_count, m.presence, m.form, m.width, m.width2, m.divisor_exponent, m.base, m.factor,
        m.bits, m.bits2, m.dictionary, m.raw,
        t.tick_count, t.time_form, t.time_width, t.time_width2, t.time_base, t.time_factor,
        t.time_bits, t.time_bits2, t.time_dictionary,
        t.batch_form, t.batch_width, t.batch_width2, t.batch_base, t.batch_factor,
        t.batch_bits, t.batch_bits2, t.batch_dictionary,
        (%4$s, m.series_no) = (%5$s, s.series_no) AS has_own_ticks
      FROM stepwell.%1$s m
      JOIN stepwell.%2$s t USING (%3$s)
      JOIN stepwell.series s USING (trial_id, series_no)
      JOIN stepwell.writers w USING (trial_id, writer_no)
    $view$, source.rows_table, source.ticks_table, source.join_columns, source.row_columns,
      source.ticks_columns);
    -- Columns that nobody asks for are not decoded.
    EXECUTE format($view$
      CREATE OR REPLACE VIEW stepwell.decoded_%1$s AS
      SELECT keep_class, received_day, trial_id, series_no, writer_no, attempt, metric_group, name,
        labels, first_time_us, last_time_us,
        CASE WHEN has_own_ticks THEN stepwell.to_batches(stepwell.pick_present(
          stepwell.decode_integers(tick_count, batch_form, batch_width, batch_width2, batch_base,
            batch_factor, batch_bits, batch_bits2, batch_dictionary),
          presence, sample_count)) END AS batches,
        CASE WHEN has_own_ticks THEN stepwell.to_timestamps(stepwell.pick_present(
          stepwell.decode_integers(tick_count, time_form, time_width, time_width2, time_base,
            time_factor, time_bits, time_bits2, time_dictionary),
          presence, sample_count)) END AS timestamps,
        CASE WHEN has_own_ticks THEN stepwell.decode_values(sample_count, form, width, width2,
          divisor_exponent, base, factor, bits, bits2, dictionary, raw) END AS values
      FROM stepwell.encoded_%1$s
    $view$, source.rows_table);
  END LOOP;
END $do$;

-- As in 0004, but that a row is decoded with its own ticks only.
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
FROM stepwell.rollups r
JOIN stepwell.rollup_ticks t
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

-- All views take the one that counts, above.
DROP FUNCTION stepwell.pick_present(bigint[], varbit);

-- As in 0005 and 0006, but that rows come by their ticks, which are decoded once for all series that
-- share them; and that nothing is decoded below the join, whatever the planner makes of it.
CREATE OR REPLACE FUNCTION stepwell.samples(
  trial_id bigint, metric_group text DEFAULT NULL, name text DEFAULT NULL,
  from_time timestamptz DEFAULT NULL, to_time timestamptz DEFAULT NULL
) RETURNS TABLE (labels jsonb, "timestamp" timestamptz, batch integer, value float8, attempt integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 AS $$
DECLARE
  -- Infinities and the last microseconds of timestamptz do not fit a bigint.
  from_us CONSTANT bigint := least(greatest(
    coalesce(extract(epoch FROM from_time) * 1000000, '-Infinity'), -9223372036854775808),
    9223372036854775807);
  to_us CONSTANT bigint := least(greatest(
    coalesce(extract(epoch FROM to_time) * 1000000, 'Infinity'), -9223372036854775808),
    9223372036854775807);
  earliest CONSTANT timestamptz := coalesce(from_time, '-infinity');
  end_time CONSTANT timestamptz := coalesce(to_time, 'infinity');
  leaf record;
  r record;
  writer_no integer;
  tick_no bigint;
  times timestamptz[];  -- of all ticks of tick_no
  batches integer[];
  values_read float8[];
BEGIN
  FOR leaf IN
    SELECT DISTINCT u.keep_class, u.received_day FROM stepwell.usage u
    WHERE u.trial_id = samples.trial_id AND u.row_count > 0
      AND (samples.metric_group IS NULL OR u.metric_group = samples.metric_group)
      AND u.last_time_us >= from_us AND u.first_time_us <= to_us
    ORDER BY u.received_day
  LOOP
    tick_no := NULL;
    FOR r IN
      EXECUTE $query$
        SELECT e.* FROM stepwell.encoded_metrics e
        WHERE e.trial_id = $1 AND ($2 IS NULL OR e.metric_group = $2)
          AND ($3 IS NULL OR e.name = $3) AND e.last_time_us >= $4 AND e.first_time_us <= $5
          AND e.keep_class = $6 AND e.received_day = $7
        ORDER BY e.writer_no, e.tick_no $query$
      USING trial_id, metric_group, name, from_us, to_us, leaf.keep_class, leaf.received_day
    LOOP
      IF tick_no IS NULL OR r.tick_no <> tick_no OR r.writer_no <> writer_no THEN
        writer_no := r.writer_no;
        tick_no := r.tick_no;
        times := stepwell.to_timestamps(stepwell.decode_integers(r.tick_count, r.time_form,
          r.time_width, r.time_width2, r.time_base, r.time_factor, r.time_bits, r.time_bits2,
          r.time_dictionary));
        batches := stepwell.to_batches(stepwell.decode_integers(r.tick_count, r.batch_form,
          r.batch_width, r.batch_width2, r.batch_base, r.batch_factor, r.batch_bits, r.batch_bits2,
          r.batch_dictionary));
      END IF;
      values_read := stepwell.decode_values(r.sample_count, r.form, r.width, r.width2,
        r.divisor_exponent, r.base, r.factor, r.bits, r.bits2, r.dictionary, r.raw);
      RETURN QUERY
        SELECT r.labels, u.t, u.b, u.v, r.attempt
        FROM (SELECT unnest(stepwell.pick_present(times, r.presence, r.sample_count)) AS t,
                unnest(stepwell.pick_present(batches, r.presence, r.sample_count)) AS b,
                unnest(values_read) AS v) u
        WHERE u.t >= earliest AND u.t < end_time;
    END LOOP;
  END LOOP;
  -- Rows of some ten ticks each: a statement for each of them would cost more than it saves.
  RETURN QUERY EXECUTE $query$
    SELECT r.labels, u.t, u.b, u.v, r.attempt
    FROM (
      SELECT d.labels, d.attempt, d.timestamps, d.batches, d.values
      FROM stepwell.decoded_recent d
      WHERE d.trial_id = $1 AND ($2 IS NULL OR d.metric_group = $2) AND ($3 IS NULL OR d.name = $3)
        AND d.last_time_us >= $4 AND d.first_time_us <= $5
      OFFSET 0
    ) r, unnest(r.timestamps, r.batches, r.values) AS u (t, b, v)
    WHERE u.t >= $6 AND u.t < $7 $query$
    USING trial_id, metric_group, name, from_us, to_us, earliest, end_time;
END $$;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA stepwell TO stepwell_read;
    GRANT SELECT ON stepwell.encoded_metrics, stepwell.encoded_recent TO stepwell_read;
  END IF;
END $$;
