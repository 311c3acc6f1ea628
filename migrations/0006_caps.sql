-- 0006 caps. Why: bounds of what is kept, set at any time for all trials, a project, a trial or a metric
-- group; trials that are archived or deleted.
-- Lock: brief on trials and usage; constant defaults rewrite no row. Time: under 10 ms.

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

ALTER TABLE stepwell.usage
  -- Of samples that a cap removed: no row of metrics holds them any more, their rollups may.
  ADD COLUMN removed_sample_count bigint NOT NULL DEFAULT 0;

-- How far a sweep of leaves has come: day and class whose samples, or whose rollups too, were removed.
CREATE TABLE stepwell.swept_leaves (
  keep_class smallint NOT NULL,
  received_day date NOT NULL,
  rollups_too boolean NOT NULL,
  swept_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (keep_class, received_day)
);

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    GRANT SELECT ON stepwell.caps, stepwell.swept_leaves TO stepwell_read;
  END IF;
END $$;
