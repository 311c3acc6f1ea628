-- 0019 where the database lies. Why: a database that was restored was noticed only by clients that had been acked more
-- than it holds, or where a person gave it a new incarnation. Now it says where it lay when it was owned last; where a
-- master finds it elsewhere it gives it the new incarnation itself. NULL = nobody has looked yet, or might.
-- Lock: brief; the row is read by masters alone.
-- Time: under 10 ms.

ALTER TABLE stepwell.database
  -- PostgreSQL's, of the cluster: pg_control_system().
  ADD COLUMN system_identifier bigint,
  -- Of its WAL: another one after a recovery to a point in time, and after a standby's promotion.
  ADD COLUMN timeline bigint,
  -- Of the database in the cluster and of this table in it: others after pg_restore, and in a copy by CREATE DATABASE.
  ADD COLUMN database_oid bigint,
  ADD COLUMN table_oid bigint;
