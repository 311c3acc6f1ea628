-- 0006 caps. Why: bounds of what is kept, set at any time for all trials, a project, a trial or a metric
-- group; trials that are archived or deleted.
-- Lock: brief on trials, usage, ticks and rollup_ticks with their leaves; constant defaults rewrite no
-- row. The index of usage is built under a lock that lets readers go on. Time: under 10 ms; 1 s for a
-- million lines of usage.

-- What was set where; NULL = not set here, 0 = no bound. The narrowest place that sets a column decides
-- it: all < project < trial < metric group (of all < of a project < of a trial).
CREATE TABLE stepwell.caps (
  -- 0 all trials, 1 a project, 2 a trial
  place smallint NOT NULL CHECK (place BETWEEN 0 AND 2),
  -- 0, project_id, trial_id
  place_id bigint NOT NULL,
  -- '' = all groups
  metric_group text NOT NULL,
  raw_age_seconds bigint,
  rollup_age_seconds bigint,
  trial_bytes bigint,
  series_samples bigint,
  profiling_window_seconds bigint,
  set_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (place, place_id, metric_group)
);

ALTER TABLE stepwell.trials
  -- Readable, but its writers are refused.
  ADD COLUMN archived boolean NOT NULL DEFAULT false,
  -- Set = a tombstone: nobody reads or writes it, its rows go in slices.
  ADD COLUMN deleted_time timestamptz;

-- A sweep looks for tombstones each minute.
CREATE INDEX trials_deleted ON stepwell.trials (deleted_time) WHERE deleted_time IS NOT NULL;

ALTER TABLE stepwell.usage
  -- Of samples that a cap removed: no row of metrics holds them any more, their rollups may.
  ADD COLUMN removed_sample_count bigint NOT NULL DEFAULT 0;

-- A sweep looks for the lines of one leaf. Its columns never change, so that updates stay in place.
CREATE INDEX usage_by_leaf ON stepwell.usage (keep_class, received_day);

ALTER TABLE stepwell.ticks
  -- Series that may have a row on these ticks, ascending: a sweep finds the rows by them. The bytes of
  -- the ticks are counted in the metric group of the first. NULL: merged by an earlier release.
  ADD COLUMN series_nos integer[];
ALTER TABLE stepwell.rollup_ticks
  -- Its metric group counts the bytes. NULL as above.
  ADD COLUMN first_series_no integer;

-- How far a sweep of leaves has come: day and class whose samples, or whose rollups too, the ledger has
-- given up. The leaves are emptied later, when no snapshot is left that has the ledger of before.
CREATE TABLE stepwell.swept_leaves (
  keep_class smallint NOT NULL,
  received_day date NOT NULL,
  rollups_too boolean NOT NULL,
  -- Of the transaction that gave up the last of them.
  ledger_xid bigint NOT NULL,
  emptied boolean NOT NULL DEFAULT false,
  swept_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (keep_class, received_day)
);

-- As before, but it looks into leaves only where the ledger says that rows are: what a sweep has given
-- up is not answered any more.
DO $do$
BEGIN
  EXECUTE replace(
    pg_get_functiondef('stepwell.samples(bigint,text,text,timestamptz,timestamptz)'::regprocedure),
    'WHERE u.trial_id = samples.trial_id',
    'WHERE u.trial_id = samples.trial_id AND u.row_count > 0');
END $do$;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    GRANT SELECT ON stepwell.caps, stepwell.swept_leaves TO stepwell_read;
  END IF;
END $$;
