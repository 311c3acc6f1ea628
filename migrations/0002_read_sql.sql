-- 0002 read sql. Why: codec v1 (docs/codec.md) decoded by plain PostgreSQL, and what people read.
-- Lock: none that matters, all is new. Time: under 100 ms.
-- Loops in PL/pgSQL, since a window sum of bigints is numeric and twenty times slower; and
-- `bits || B''`, since substring() of a column reads it out of line again for every sample.

-- The integers of one encoded vector: times, batches, or values before their division.
CREATE FUNCTION stepwell.decode_integers(
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
  due := CASE form
    WHEN 0 THEN n WHEN 1 THEN n - 1 WHEN 5 THEN n WHEN 6 THEN n
    WHEN 2 THEN CASE w2 WHEN 0 THEN n ELSE length(c) / w2 END
    WHEN 3 THEN bit_count(c)
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

-- The values of one encoded vector, bit for bit as they were given.
CREATE FUNCTION stepwell.decode_values(
  sample_count integer, form smallint, width smallint, width2 smallint, divisor_exponent smallint,
  base bigint, factor bigint, bits varbit, bits2 varbit, dictionary bigint[], raw float8[]
) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  k bigint[];
  divisor float8;
BEGIN
  IF form = 4 THEN
    IF coalesce(cardinality(raw), 0) IS DISTINCT FROM sample_count THEN
      RAISE 'vector of form 4: raw has % elements for % samples',
        coalesce(cardinality(raw), 0), sample_count USING ERRCODE = 'data_corrupted';
    END IF;
    RETURN coalesce(raw, '{}');
  END IF;
  -- Indexes into raw where the dictionary is empty: integers cannot say NaN.
  IF form = 5 AND cardinality(raw) > 0 AND coalesce(cardinality(dictionary), 0) = 0 THEN
    k := stepwell.decode_integers(sample_count, 0::smallint, width, width2, 1, 1, bits, bits2, NULL);
    RETURN ARRAY(SELECT raw[index] FROM unnest(k) WITH ORDINALITY AS u (index, i) ORDER BY i);
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
  RETURN ARRAY(SELECT x::float8 / divisor FROM unnest(k) AS x);
END $$;

-- The elements whose bit in `presence` is 1; all of them where it is NULL.
CREATE FUNCTION stepwell.pick_present(elements bigint[], presence varbit)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  p CONSTANT varbit := presence || B'';
BEGIN
  IF p IS NULL THEN
    RETURN elements;
  ELSIF length(p) <> cardinality(elements) THEN
    RAISE 'presence has % bits for % ticks', length(p), cardinality(elements)
      USING ERRCODE = 'data_corrupted';
  END IF;
  RETURN ARRAY(
    SELECT elements[i] FROM generate_series(1, length(p)) AS i WHERE get_bit(p, i - 1) = 1);
END $$;

-- Microseconds since 1970 as times. An interval times a number is a float8 inside, exact up to 2^53
-- microseconds (the year 2255) only; so whole hours go apart.
CREATE FUNCTION stepwell.to_timestamps(times_us bigint[])
RETURNS timestamptz[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  epoch CONSTANT timestamptz := 'epoch';
  hour CONSTANT interval := '1 hour';
  us CONSTANT interval := '1 microsecond';
BEGIN
  RETURN ARRAY(
    SELECT epoch + t / 3600000000 * hour + t % 3600000000 * us FROM unnest(times_us) AS t);
END $$;

-- -1, no batch, is NULL for people.
CREATE FUNCTION stepwell.to_batches(batches bigint[])
RETURNS integer[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_replace(batches::integer[], -1, NULL)
$$;

-- decoded_metrics and decoded_recent: rows of either table with their ticks and names, decoded.
-- Columns that nobody asks for are not decoded. (keep_class, received_day) is the partition of
-- metrics and ticks: a query that names it plans, locks and reads no other. One text for both.
DO $do$
DECLARE
  source record;
BEGIN
  FOR source IN
    SELECT * FROM (VALUES
      ('metrics', 'ticks', 'keep_class, received_day, trial_id, writer_no, tick_no'),
      ('recent', 'recent_ticks', 'trial_id, writer_no, tick_no')
    ) AS v (rows_table, ticks_table, join_columns)
  LOOP
    EXECUTE format($view$
      CREATE VIEW stepwell.decoded_%1$s AS
      SELECT m.keep_class, m.received_day, m.trial_id, m.series_no, m.writer_no,
        w.attempt, s.metric_group, s.name, s.labels, m.first_time_us, m.last_time_us,
        stepwell.to_batches(stepwell.pick_present(
          stepwell.decode_integers(t.tick_count, t.batch_form, t.batch_width, t.batch_width2,
            t.batch_base, t.batch_factor, t.batch_bits, t.batch_bits2, t.batch_dictionary),
          m.presence)) AS batches,
        stepwell.to_timestamps(stepwell.pick_present(
          stepwell.decode_integers(t.tick_count, t.time_form, t.time_width, t.time_width2,
            t.time_base, t.time_factor, t.time_bits, t.time_bits2, t.time_dictionary),
          m.presence)) AS timestamps,
        stepwell.decode_values(m.sample_count, m.form, m.width, m.width2, m.divisor_exponent,
          m.base, m.factor, m.bits, m.bits2, m.dictionary, m.raw) AS values
      FROM stepwell.%1$s m
      JOIN stepwell.%2$s t USING (%3$s)
      JOIN stepwell.series s USING (trial_id, series_no)
      JOIN stepwell.writers w USING (trial_id, writer_no)
    $view$, source.rows_table, source.ticks_table, source.join_columns);
  END LOOP;
END $do$;

-- The public table: three arrays of one length per row. Holds what is folded; a master holds up to
-- a minute more until it is asked to flush.
CREATE VIEW stepwell.generic_metrics AS
SELECT trial_id, attempt, metric_group, name, labels, batches, timestamps, values
FROM stepwell.decoded_metrics
UNION ALL
SELECT trial_id, attempt, metric_group, name, labels, batches, timestamps, values
FROM stepwell.decoded_recent;

-- Samples one by one, of [from_time, to_time); NULL = any. In no order. One query per partition in
-- which the ledger knows of such samples, each planned for that partition alone, then recent rows.
CREATE FUNCTION stepwell.samples(
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
  query CONSTANT text := $query$
    SELECT r.labels, u.t, u.b, u.v, r.attempt
    FROM stepwell.decoded_%s r, unnest(r.timestamps, r.batches, r.values) AS u (t, b, v)
    WHERE r.trial_id = $1 AND ($2 IS NULL OR r.metric_group = $2) AND ($3 IS NULL OR r.name = $3)
      AND r.last_time_us >= $4 AND r.first_time_us <= $5
      AND ($6 IS NULL OR u.t >= $6) AND ($7 IS NULL OR u.t < $7) $query$;
  leaf record;
BEGIN
  FOR leaf IN
    SELECT DISTINCT u.keep_class, u.received_day FROM stepwell.usage u
    WHERE u.trial_id = samples.trial_id
      AND (samples.metric_group IS NULL OR u.metric_group = samples.metric_group)
      AND u.last_time_us >= from_us AND u.first_time_us <= to_us
    ORDER BY u.received_day
  LOOP
    RETURN QUERY EXECUTE format(query, 'metrics') || 'AND r.keep_class = $8 AND r.received_day = $9'
      USING trial_id, metric_group, name, from_us, to_us, from_time, to_time,
        leaf.keep_class, leaf.received_day;
  END LOOP;
  RETURN QUERY EXECUTE format(query, 'recent')
    USING trial_id, metric_group, name, from_us, to_us, from_time, to_time;
END $$;

-- Who may only read: GRANT stepwell_read TO somebody. Roles belong to the whole server, so another
-- database may have made it already, and who migrates may not be allowed to.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    CREATE ROLE stepwell_read NOLOGIN;
  END IF;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'role stepwell_read is missing and % may not create roles', current_user;
END $$;
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    GRANT USAGE ON SCHEMA stepwell TO stepwell_read;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA stepwell TO stepwell_read;
    GRANT SELECT ON stepwell.generic_metrics, stepwell.decoded_metrics, stepwell.decoded_recent,
      stepwell.projects, stepwell.trials, stepwell.attempts, stepwell.series, stepwell.gaps,
      stepwell.keep_classes, stepwell.usage TO stepwell_read;
  END IF;
END $$;
