-- 0020 samples of a leaf at once. Why: where rollups outlive samples, the sweep of a leaf rewrote its lines of the
-- ledger, one by one: 2.7 MB of WAL for those of a thousand trials. Now one mark of the leaf says it of all of its
-- lines, and these stay as they are until their rollups go, or until rows come late.
-- Lock: masters, usage and swept_leaves, once those who read them have ended; who comes meanwhile waits behind, also
-- for the new index. Time: under 50 ms; 2 s for a million lines of usage.
-- A master of before this migration writes stepwell.usage, which is a view now. One that owns the database goes on to
-- commit, but folds no more until a newer one takes over; none of them takes over any more.
LOCK TABLE stepwell.masters IN ACCESS EXCLUSIVE MODE;  -- before a row of it, as whoever renews it would deadlock
UPDATE stepwell.masters SET migration = 20;
ALTER TABLE stepwell.masters DROP CONSTRAINT masters_migration,
  ADD CONSTRAINT masters_migration CHECK (migration >= 20);

ALTER TABLE stepwell.usage RENAME TO usage_lines;
ALTER INDEX stepwell.usage_pkey RENAME TO usage_lines_pkey;

ALTER TABLE stepwell.swept_leaves
  -- The mark. Samples of trials up to this one are given up, whatever their lines say.
  ADD COLUMN samples_through bigint NOT NULL DEFAULT 0;

ALTER TABLE stepwell.usage_lines
  -- The mark of its leaf says nothing of this line: what it counts came behind it, or it was given up for itself.
  ADD COLUMN after_sweep boolean NOT NULL DEFAULT false;

-- A sweep goes through the lines of a leaf by trial. These columns never change, so that updates stay in place.
CREATE INDEX usage_lines_by_leaf ON stepwell.usage_lines (keep_class, received_day, trial_id);
DROP INDEX stepwell.usage_by_leaf;

-- The ledger as everybody reads it, under the name that it always had. Lines of a leaf that is marked change at one
-- moment with the mark, in each snapshot.
CREATE VIEW stepwell.usage AS
SELECT u.trial_id, u.received_day, u.keep_class, u.metric_group,
  CASE WHEN u.trial_id <= s.samples_through AND NOT u.after_sweep THEN 0 ELSE u.row_count END AS row_count,
  CASE WHEN u.trial_id <= s.samples_through AND NOT u.after_sweep THEN 0 ELSE u.sample_count END AS sample_count,
  CASE WHEN u.trial_id <= s.samples_through AND NOT u.after_sweep THEN 0 ELSE u.byte_count END AS byte_count,
  u.first_time_us, u.last_time_us, u.rollup_byte_count, u.has_rollups,
  CASE WHEN u.trial_id <= s.samples_through AND NOT u.after_sweep THEN u.removed_sample_count + u.sample_count
    ELSE u.removed_sample_count END AS removed_sample_count
FROM stepwell.usage_lines u
LEFT JOIN stepwell.swept_leaves s ON s.keep_class = u.keep_class AND s.received_day = u.received_day;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'stepwell_read') THEN
    REVOKE SELECT ON stepwell.usage_lines FROM stepwell_read;
    GRANT SELECT ON stepwell.usage TO stepwell_read;
  END IF;
END $$;
