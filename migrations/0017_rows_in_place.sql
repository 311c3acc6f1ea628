-- 0017 rows in place. Why: a row of the journal holds a few kilobytes of one trial. What exceeds 2 kB went into the
-- TOAST table, in pieces with an index entry each, to be fetched from there when a master starts. A row up to
-- 8000 bytes stays in its table now, and commits write none that is longer, but for single long chunks. Segments
-- go by TRUNCATE: autovacuum, which found little there, would read and write them for nothing.
-- And: ANALYZE sorted all columns of the data tables, vectors and their widths among them, which no query
-- compares with anything. Only those that are asked by have statistics now.
-- Lock: SHARE UPDATE EXCLUSIVE on the segments of the journal, of recent and of recent_rollups and on the leaves:
-- brief; no reader waits, no commit, no fold. It waits for a VACUUM or ANALYZE of one of them that is under way.
-- Time: under 200 ms, whatever they hold.

ALTER TABLE stepwell.journal_0
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE stepwell.journal_1
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE stepwell.journal_2
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE stepwell.journal_3
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE stepwell.journal_4
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE stepwell.journal_5
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE stepwell.journal_6
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE stepwell.journal_7
  SET (toast_tuple_target = 8160, autovacuum_enabled = false, toast.autovacuum_enabled = false);

-- Leaves PostgreSQL no statistics but of the columns that queries compare, sort or join by. The master calls it
-- for each leaf that it makes; the present ones are done here.
CREATE FUNCTION stepwell.analyze_keys(leaf regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  changes text;
BEGIN
  SELECT string_agg(format('ALTER COLUMN %I SET STATISTICS 0', attname), ', ' ORDER BY attnum)
    INTO changes
  FROM pg_attribute
  WHERE attrelid = leaf AND attnum > 0 AND NOT attisdropped AND attstattarget IS DISTINCT FROM 0
    AND attname NOT IN ('segment', 'fold_no', 'keep_class', 'received_day', 'received_time_us', 'trial_id',
      'writer_no', 'series_no', 'tick_group', 'tick_no', 'step_seconds', 'first_time_us', 'last_time_us',
      'first_batch', 'last_batch');
  IF changes IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %s %s', leaf, changes);
  END IF;
END $$;

-- Leaves of past days are hardly analyzed again: not thousands of locks for them.
SELECT stepwell.analyze_keys(c.oid)
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent IN ('stepwell.metrics'::regclass, 'stepwell.ticks'::regclass, 'stepwell.rollups'::regclass,
    'stepwell.rollup_ticks'::regclass, 'stepwell.recent'::regclass, 'stepwell.recent_ticks'::regclass)
  AND (c.relname LIKE 'recent%' OR right(c.relname, 8) >= to_char(now() - interval '2 days', 'YYYYMMDD'));
SELECT stepwell.analyze_keys(format('stepwell.%s_%s', name, number)::regclass)
FROM unnest(ARRAY['recent_rollups', 'recent_rollup_ticks']) AS name, generate_series(0, 3) AS number;
