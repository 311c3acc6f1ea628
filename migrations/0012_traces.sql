-- 0012 traces. Why: traces of trials (files that training loops and profilers write) are kept beside their
-- samples, in parts, within caps of their own.
-- Lock: brief on caps; columns without a default rewrite no row. Time: under 10 ms, whatever the rows.

-- One per trace, numbered within its trial.
CREATE TABLE stepwell.traces (
  trial_id bigint NOT NULL,
  trace_no integer NOT NULL,
  -- 1 uploading, 2 complete, 3 refused, 4 removed (TraceState of the wire contract), 5 deleted: its parts and
  -- then its row go with the next sweeps
  state smallint NOT NULL,
  -- TraceFormat of the wire contract
  format smallint NOT NULL,
  rank integer,
  epoch integer,
  first_batch integer,
  last_batch integer,
  -- In trace_parts.
  part_count integer NOT NULL DEFAULT 0,
  -- As told; and what of it is there.
  byte_count bigint NOT NULL,
  received_bytes bigint NOT NULL DEFAULT 0,
  created_time timestamptz NOT NULL DEFAULT now(),
  changed_time timestamptz NOT NULL DEFAULT now(),
  writer uuid,
  name text NOT NULL,
  machine text NOT NULL,
  sha256 bytea NOT NULL,
  -- Of one that was refused or removed: the cap.
  reason text NOT NULL DEFAULT '',
  PRIMARY KEY (trial_id, trace_no)
);
-- The same file twice is one trace.
CREATE UNIQUE INDEX traces_by_content ON stepwell.traces (trial_id, sha256, name) WHERE state <= 3;
-- What sweeps look for: parts that are to go, and uploads that nobody goes on with.
CREATE INDEX traces_unfinished ON stepwell.traces (state, trial_id, trace_no)
  WHERE state = 1 OR (state >= 4 AND part_count > 0) OR state = 5;

-- All parts but a trace's last are of 1 MiB: what begins at byte b is in part b / 1 MiB. Never changed.
CREATE TABLE stepwell.trace_parts (
  trial_id bigint NOT NULL,
  trace_no integer NOT NULL,
  part_no integer NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (trial_id, trace_no, part_no)
);
-- Most of them are packed already.
ALTER TABLE stepwell.trace_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The ledger of traces, moved in the transactions that begin and end one; uploads of a trial take turns by it.
CREATE TABLE stepwell.trace_usage (
  trial_id bigint PRIMARY KEY,
  -- Numbers given.
  trace_count integer NOT NULL DEFAULT 0,
  -- Of traces that are complete or uploading, as told.
  byte_count bigint NOT NULL DEFAULT 0,
  refused_count bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

ALTER TABLE stepwell.caps
  -- Of one trace.
  ADD COLUMN trace_bytes bigint,
  -- Of all of a trial's.
  ADD COLUMN trial_trace_bytes bigint,
  -- From a trace's upload on.
  ADD COLUMN trace_age_seconds bigint;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    GRANT SELECT ON stepwell.traces, stepwell.trace_parts, stepwell.trace_usage TO stepwell_read;
  END IF;
END $$;
