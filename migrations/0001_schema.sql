-- 0001 schema. Why: the tables of ingest, folded samples and bookkeeping.
-- Lock: none that matters, all is new. Time: under 100 ms.
-- Rules: trial_id leads every key; no triggers, no defaults that need extensions; times of samples
-- are microseconds since 1970 UTC (_us), since a client's clock may lie outside what people expect.

CREATE SCHEMA IF NOT EXISTS stepwell;

-- One row: the identity of this database. Whoever restores an old copy gives it a new incarnation.
CREATE TABLE stepwell.database (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  incarnation uuid NOT NULL DEFAULT gen_random_uuid(),
  created_time timestamptz NOT NULL DEFAULT now()
);
INSERT INTO stepwell.database DEFAULT VALUES;

-- Every fold and every merge takes one number; readers use it to see heads and rows as one.
CREATE SEQUENCE stepwell.fold_numbers;
-- Trial ids that the master gives; callers' own ids lie below.
CREATE SEQUENCE stepwell.trial_numbers START 1000000000;

-- Who owns the database. One row (slot 0): the owner renews it every 2 s; another master may take
-- it once it is 10 s old by this database's clock, the same master_id at once. Each take-over
-- raises the epoch.
CREATE TABLE stepwell.masters (
  slot smallint PRIMARY KEY CHECK (slot = 0),
  master_id text NOT NULL,
  epoch bigint NOT NULL,
  address text NOT NULL,
  renewed_time timestamptz NOT NULL
);

CREATE TABLE stepwell.projects (
  project_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  created_time timestamptz NOT NULL DEFAULT now()
);
INSERT INTO stepwell.projects (name) VALUES ('default');

-- owner_epoch fences masters: every transaction that writes a trial's data checks it under a lock,
-- and a take-over raises it before it reads the journal.
CREATE TABLE stepwell.trials (
  trial_id bigint PRIMARY KEY,
  project_id integer NOT NULL REFERENCES stepwell.projects,
  external_id text,
  owner_epoch bigint NOT NULL,
  -- 1 running, 2 completed, 3 failed, 4 lost (TrialState of the wire contract)
  state smallint NOT NULL DEFAULT 1,
  created_time timestamptz NOT NULL DEFAULT now(),
  attempt_count integer NOT NULL DEFAULT 0,
  writer_count integer NOT NULL DEFAULT 0,
  series_count integer NOT NULL DEFAULT 0,
  UNIQUE (project_id, external_id)
) WITH (fillfactor = 70);

-- Starts of a trial, numbered by first sight of their key.
CREATE TABLE stepwell.attempts (
  trial_id bigint NOT NULL,
  attempt integer NOT NULL,
  attempt_key text NOT NULL,
  created_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (trial_id, attempt),
  UNIQUE (trial_id, attempt_key)
);

-- The exactly-once state. Narrow and half-full pages, because each commit rewrites these rows in
-- place. Lives as long as its trial.
CREATE TABLE stepwell.writers (
  trial_id bigint NOT NULL,
  generation bigint NOT NULL,
  -- All chunks up to and including these are committed / are in recent or metrics rows.
  committed_sequence bigint NOT NULL DEFAULT 0,
  folded_sequence bigint NOT NULL DEFAULT 0,
  -- Of the chunk with committed_sequence; 0 for a gap.
  last_crc32c bigint NOT NULL DEFAULT 0,
  writer_no integer NOT NULL,
  attempt integer NOT NULL,
  -- NULL for a machine's sampler.
  rank integer,
  -- 1 open, 2 closed, 3 died
  state smallint NOT NULL DEFAULT 1,
  writer uuid NOT NULL,
  PRIMARY KEY (trial_id, writer_no),
  UNIQUE (trial_id, writer)
) WITH (fillfactor = 50);

-- What a writer said of itself when it opened; for people.
CREATE TABLE stepwell.writer_origins (
  trial_id bigint NOT NULL,
  writer_no integer NOT NULL,
  agent_id text NOT NULL,
  machine text NOT NULL,
  world_size integer NOT NULL,
  labels jsonb NOT NULL,
  recorder_version text NOT NULL,
  agent_version text NOT NULL,
  opened_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (trial_id, writer_no)
);

-- The dictionary: labels live here and nowhere else. labels_hash = first 16 bytes of SHA-256 over
-- name NUL value NUL ..., sorted by name; an index over the labels themselves would burst at 2.7 kB.
CREATE TABLE stepwell.series (
  trial_id bigint NOT NULL,
  series_no integer NOT NULL,
  -- 1 gauge, 2 counter, 3 duration
  kind smallint NOT NULL,
  metric_group text NOT NULL,
  name text NOT NULL,
  unit text NOT NULL,
  labels jsonb NOT NULL,
  labels_hash bytea NOT NULL,
  created_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (trial_id, series_no),
  UNIQUE (trial_id, metric_group, name, labels_hash)
);

-- How long rows live, at most 8 classes; 0 is the global one. NULL = for ever.
CREATE TABLE stepwell.keep_classes (
  keep_class smallint PRIMARY KEY CHECK (keep_class BETWEEN 0 AND 7),
  raw_age interval,
  rollup_age interval
);
INSERT INTO stepwell.keep_classes VALUES (0, NULL, NULL);

-- The generic-metrics rows: one per series and stretch of at most one hour. Encoded by codec v1
-- (docs/codec.md). min, max, sum, last are over samples that are not NaN, NULL if there are none.
-- Leaves metrics_k<class>_<yyyymmdd> are attached ahead by the master; there is no DEFAULT leaf.
CREATE TABLE stepwell.metrics (
  trial_id bigint NOT NULL,
  tick_no bigint NOT NULL,
  first_time_us bigint NOT NULL,
  last_time_us bigint NOT NULL,
  min float8,
  max float8,
  sum float8,
  last float8,
  base bigint NOT NULL,
  factor bigint NOT NULL,
  series_no integer NOT NULL,
  writer_no integer NOT NULL,
  -- -1 = the samples have no batch.
  first_batch integer NOT NULL,
  last_batch integer NOT NULL,
  sample_count integer NOT NULL,
  nan_count integer NOT NULL,
  -- The day (UTC) on which the master received the samples.
  received_day date NOT NULL,
  keep_class smallint NOT NULL,
  form smallint NOT NULL,
  width smallint NOT NULL,
  width2 smallint NOT NULL,
  divisor_exponent smallint NOT NULL,
  bits varbit,
  bits2 varbit,
  dictionary bigint[],
  raw float8[],
  -- One bit per tick of the ticks row, 1 = the series has a sample; NULL = all have.
  presence varbit
) PARTITION BY RANGE (keep_class, received_day);
ALTER TABLE stepwell.metrics ALTER COLUMN bits SET STORAGE EXTERNAL,
  ALTER COLUMN bits2 SET STORAGE EXTERNAL, ALTER COLUMN presence SET STORAGE EXTERNAL,
  ALTER COLUMN raw SET STORAGE EXTERNAL;
CREATE INDEX metrics_by_series ON stepwell.metrics (trial_id, series_no, first_time_us);

-- One timestamp and batch vector per writer, tick group and stretch, shared by its metrics rows.
CREATE TABLE stepwell.ticks (
  trial_id bigint NOT NULL,
  tick_no bigint NOT NULL,
  first_time_us bigint NOT NULL,
  last_time_us bigint NOT NULL,
  time_base bigint NOT NULL,
  time_factor bigint NOT NULL,
  batch_base bigint NOT NULL,
  batch_factor bigint NOT NULL,
  writer_no integer NOT NULL,
  tick_group integer NOT NULL,
  tick_count integer NOT NULL,
  first_batch integer NOT NULL,
  last_batch integer NOT NULL,
  received_day date NOT NULL,
  keep_class smallint NOT NULL,
  time_form smallint NOT NULL,
  time_width smallint NOT NULL,
  time_width2 smallint NOT NULL,
  batch_form smallint NOT NULL,
  batch_width smallint NOT NULL,
  batch_width2 smallint NOT NULL,
  time_bits varbit,
  time_bits2 varbit,
  time_dictionary bigint[],
  batch_bits varbit,
  batch_bits2 varbit,
  batch_dictionary bigint[]
) PARTITION BY RANGE (keep_class, received_day);
ALTER TABLE stepwell.ticks ALTER COLUMN time_bits SET STORAGE EXTERNAL,
  ALTER COLUMN time_bits2 SET STORAGE EXTERNAL, ALTER COLUMN batch_bits SET STORAGE EXTERNAL,
  ALTER COLUMN batch_bits2 SET STORAGE EXTERNAL;
CREATE INDEX ticks_by_writer ON stepwell.ticks (trial_id, writer_no, tick_no);

-- Small rows that folds write, in a ring of four leaves recycled by TRUNCATE; merges move them into
-- metrics. Same columns, and fold_no; keep_class is given at merge.
CREATE TABLE stepwell.recent (
  segment smallint NOT NULL,
  fold_no bigint NOT NULL,
  LIKE stepwell.metrics INCLUDING STORAGE
) PARTITION BY LIST (segment);
CREATE INDEX recent_by_series ON stepwell.recent (trial_id, series_no, first_time_us);
CREATE TABLE stepwell.recent_ticks (
  segment smallint NOT NULL,
  fold_no bigint NOT NULL,
  -- When the master received the oldest tick: what a merge waits for.
  received_time_us bigint NOT NULL,
  -- The series that have a row of recent on these ticks; a merge finds the rows by them.
  series_nos integer[] NOT NULL,
  LIKE stepwell.ticks INCLUDING STORAGE
) PARTITION BY LIST (segment);
CREATE INDEX recent_ticks_by_writer ON stepwell.recent_ticks (trial_id, writer_no, tick_no);
CREATE TABLE stepwell.recent_0 PARTITION OF stepwell.recent FOR VALUES IN (0);
CREATE TABLE stepwell.recent_1 PARTITION OF stepwell.recent FOR VALUES IN (1);
CREATE TABLE stepwell.recent_2 PARTITION OF stepwell.recent FOR VALUES IN (2);
CREATE TABLE stepwell.recent_3 PARTITION OF stepwell.recent FOR VALUES IN (3);
CREATE TABLE stepwell.recent_ticks_0 PARTITION OF stepwell.recent_ticks FOR VALUES IN (0);
CREATE TABLE stepwell.recent_ticks_1 PARTITION OF stepwell.recent_ticks FOR VALUES IN (1);
CREATE TABLE stepwell.recent_ticks_2 PARTITION OF stepwell.recent_ticks FOR VALUES IN (2);
CREATE TABLE stepwell.recent_ticks_3 PARTITION OF stepwell.recent_ticks FOR VALUES IN (3);

-- What is durable before it is folded: one row per commit and trial. Written by name, recycled by
-- TRUNCATE, read after a crash only. The payload holds each chunk's bytes as they came, and per
-- table its tick group and series numbers, so that replay needs no definition.
CREATE TABLE stepwell.journal_0 (
  trial_id bigint NOT NULL,
  received_time_us bigint NOT NULL,
  -- Vectors of one length: which sequences of which writers the payload holds.
  writer_nos integer[] NOT NULL,
  generations bigint[] NOT NULL,
  first_sequences bigint[] NOT NULL,
  last_sequences bigint[] NOT NULL,
  payload bytea NOT NULL
);
ALTER TABLE stepwell.journal_0 ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE TABLE stepwell.journal_1 (LIKE stepwell.journal_0 INCLUDING STORAGE);
CREATE TABLE stepwell.journal_2 (LIKE stepwell.journal_0 INCLUDING STORAGE);
CREATE TABLE stepwell.journal_3 (LIKE stepwell.journal_0 INCLUDING STORAGE);
CREATE TABLE stepwell.journal_4 (LIKE stepwell.journal_0 INCLUDING STORAGE);
CREATE TABLE stepwell.journal_5 (LIKE stepwell.journal_0 INCLUDING STORAGE);
CREATE TABLE stepwell.journal_6 (LIKE stepwell.journal_0 INCLUDING STORAGE);
CREATE TABLE stepwell.journal_7 (LIKE stepwell.journal_0 INCLUDING STORAGE);

-- Known holes, coalesced: a gap of the same writer, group and cause that goes on is extended.
CREATE TABLE stepwell.gaps (
  trial_id bigint NOT NULL,
  gap_no bigint GENERATED ALWAYS AS IDENTITY,
  -- 0 = the trial as a whole.
  writer_no integer NOT NULL,
  -- GapCause of the wire contract.
  cause smallint NOT NULL,
  -- '' = all groups.
  metric_group text NOT NULL,
  -- Known to be missing; 0 = unknown, or none.
  sample_count bigint NOT NULL,
  -- 0 = unknown.
  first_time_us bigint NOT NULL,
  last_time_us bigint NOT NULL,
  -- 0 = no sequence was consumed by it.
  first_sequence bigint NOT NULL,
  last_sequence bigint NOT NULL,
  reason text NOT NULL,
  noted_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (trial_id, writer_no, cause, gap_no)
);

-- The ledger: what is stored, moved in the transactions that store it. Reads take the partitions
-- they must look at from here.
CREATE TABLE stepwell.usage (
  trial_id bigint NOT NULL,
  received_day date NOT NULL,
  keep_class smallint NOT NULL,
  metric_group text NOT NULL,
  row_count bigint NOT NULL,
  sample_count bigint NOT NULL,
  byte_count bigint NOT NULL,
  first_time_us bigint NOT NULL,
  last_time_us bigint NOT NULL,
  PRIMARY KEY (trial_id, received_day, keep_class, metric_group)
) WITH (fillfactor = 70);
