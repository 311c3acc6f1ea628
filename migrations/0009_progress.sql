-- 0009 progress. Why: each commit rewrote its writers' rows in place; while anybody keeps a transaction open
-- none of the versions may go, and each commit looked through all of them. Commits insert beside the journal
-- instead, and what they inserted goes by TRUNCATE.
-- Lock: brief on masters. Time: under 50 ms, whatever the database holds.

-- A row says that all chunks of a writer up to and including committed_sequence are committed. Written with
-- the journal rows of the same segment, truncated with them. What a truncation takes away is in
-- stepwell.writers before. Nothing here ever dies but by TRUNCATE, so that no vacuum has anything to do.
CREATE TABLE stepwell.progress_0 (
  trial_id bigint NOT NULL,
  committed_sequence bigint NOT NULL,
  -- Of the chunk with committed_sequence; 0 for a gap.
  last_crc32c bigint NOT NULL,
  writer_no integer NOT NULL,
  PRIMARY KEY (trial_id, writer_no, committed_sequence)
) WITH (autovacuum_enabled = false);
CREATE TABLE stepwell.progress_1 (LIKE stepwell.progress_0 INCLUDING INDEXES) WITH (autovacuum_enabled = false);
CREATE TABLE stepwell.progress_2 (LIKE stepwell.progress_0 INCLUDING INDEXES) WITH (autovacuum_enabled = false);
CREATE TABLE stepwell.progress_3 (LIKE stepwell.progress_0 INCLUDING INDEXES) WITH (autovacuum_enabled = false);
CREATE TABLE stepwell.progress_4 (LIKE stepwell.progress_0 INCLUDING INDEXES) WITH (autovacuum_enabled = false);
CREATE TABLE stepwell.progress_5 (LIKE stepwell.progress_0 INCLUDING INDEXES) WITH (autovacuum_enabled = false);
CREATE TABLE stepwell.progress_6 (LIKE stepwell.progress_0 INCLUDING INDEXES) WITH (autovacuum_enabled = false);
CREATE TABLE stepwell.progress_7 (LIKE stepwell.progress_0 INCLUDING INDEXES) WITH (autovacuum_enabled = false);

CREATE VIEW stepwell.progress AS
  SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_0
  UNION ALL SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_1
  UNION ALL SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_2
  UNION ALL SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_3
  UNION ALL SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_4
  UNION ALL SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_5
  UNION ALL SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_6
  UNION ALL SELECT trial_id, writer_no, committed_sequence, last_crc32c FROM stepwell.progress_7;

-- Where writers stand. To be read in READ COMMITTED, by one statement: that holds locks on all of its tables
-- before it takes its snapshot. An older snapshot may find a segment truncated and not see yet what was
-- carried into stepwell.writers: it sees too little.
CREATE VIEW stepwell.writer_progress AS
  SELECT w.trial_id, w.writer_no, w.writer, w.attempt, w.rank, w.state, w.generation,
    greatest(w.committed_sequence, n.committed_sequence) AS committed_sequence, w.folded_sequence,
    CASE WHEN n.committed_sequence > w.committed_sequence THEN n.last_crc32c ELSE w.last_crc32c END
      AS last_crc32c
  FROM stepwell.writers w
  LEFT JOIN LATERAL (
    SELECT p.committed_sequence, p.last_crc32c FROM stepwell.progress p
    WHERE p.trial_id = w.trial_id AND p.writer_no = w.writer_no
    ORDER BY p.committed_sequence DESC LIMIT 1
  ) n ON true;

COMMENT ON COLUMN stepwell.writers.committed_sequence IS
  'at least this; of a writer that is open the newest is in stepwell.writer_progress';

-- Who commits remembers where writers stand, as long as nobody else commits: each commit holds this row
-- alone, and who has not the book of this number raises it and begins an empty one.
CREATE TABLE stepwell.progress_book (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  book_no bigint NOT NULL
);
INSERT INTO stepwell.progress_book (book_no) VALUES (0);

-- A master of before this migration would take stepwell.writers for the whole truth, and commit again what
-- is committed. One that owns the database goes on, for then it is; but none takes over any more, since none
-- gives this column. The number of the newest migration that an owner has to know.
ALTER TABLE stepwell.masters ADD COLUMN migration smallint NOT NULL DEFAULT 9;
ALTER TABLE stepwell.masters ALTER COLUMN migration DROP DEFAULT;
