-- 0005 samples, joined first. Why: samples() decoded a row of metrics with the ticks of other rows before
-- the join had left them out, and so failed where a row lacks some of its ticks ("presence has 4 bits
-- for 600 ticks"), or was slow: nothing bade the planner join first where the tables were young.
-- Lock: brief, of the function alone. 10M rows: at once.

-- As in 0002, but that rows are joined with their ticks in a query of its own: OFFSET 0 keeps the planner
-- from calling unnest, which decodes, below that join.
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
  query CONSTANT text := $query$
    SELECT r.labels, u.t, u.b, u.v, r.attempt
    FROM (
      SELECT d.labels, d.attempt, d.timestamps, d.batches, d.values
      FROM stepwell.decoded_%s d
      WHERE d.trial_id = $1 AND ($2 IS NULL OR d.metric_group = $2) AND ($3 IS NULL OR d.name = $3)
        AND d.last_time_us >= $4 AND d.first_time_us <= $5 %s
      OFFSET 0
    ) r, unnest(r.timestamps, r.batches, r.values) AS u (t, b, v)
    WHERE ($6 IS NULL OR u.t >= $6) AND ($7 IS NULL OR u.t < $7) $query$;
  leaf record;
BEGIN
  FOR leaf IN
    SELECT DISTINCT u.keep_class, u.received_day FROM stepwell.usage u
    WHERE u.trial_id = samples.trial_id
      AND (samples.metric_group IS NULL OR u.metric_group = samples.metric_group)
      AND u.last_time_us >= from_us AND u.first_time_us <= to_us
    ORDER BY u.received_day
  LOOP
    RETURN QUERY EXECUTE
      format(query, 'metrics', 'AND d.keep_class = $8 AND d.received_day = $9')
      USING trial_id, metric_group, name, from_us, to_us, from_time, to_time,
        leaf.keep_class, leaf.received_day;
  END LOOP;
  RETURN QUERY EXECUTE format(query, 'recent', '')
    USING trial_id, metric_group, name, from_us, to_us, from_time, to_time;
END $$;
