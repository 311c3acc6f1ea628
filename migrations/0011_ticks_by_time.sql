-- 0011 ticks by time. Why: a chart of many series asks the ticks of its trial where the first row that reaches
-- into its range begins, and looked at all ticks of the trial in a leaf for that: 20,000 rows where 10^9
-- samples lie in one. last_time_us comes last, so that ticks that end before the range are told by the index.
-- Lock: writers of ticks and rollup_ticks (merges, sweeps) wait while they are built, readers and acks go on.
-- Time: there is one row for thousands of samples, under 1 s for 10^10 of them.

CREATE INDEX ticks_by_time ON stepwell.ticks (trial_id, first_time_us, last_time_us);
CREATE INDEX rollup_ticks_by_time
  ON stepwell.rollup_ticks (trial_id, step_seconds, first_time_us, last_time_us);
