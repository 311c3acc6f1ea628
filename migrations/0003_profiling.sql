-- 0003 profiling. Why: what an operator asked of a trial's recording (AdminService.SetProfiling), so
-- that writers which open later, and a master that starts again, know it.
-- Lock: brief on trials; constant defaults rewrite no row. Time: under 10 ms.

ALTER TABLE stepwell.trials
  -- Grows with each request; 0 = nobody ever asked.
  ADD COLUMN profiling_revision bigint NOT NULL DEFAULT 0,
  ADD COLUMN profiling_on boolean NOT NULL DEFAULT true,
  -- 0 and no groups = what each writer chose itself.
  ADD COLUMN profiling_interval_us bigint NOT NULL DEFAULT 0,
  ADD COLUMN profiling_groups text[] NOT NULL DEFAULT '{}';
