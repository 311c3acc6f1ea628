-- Three roles for a PostgreSQL that others share (--database-url), so that neither a master nor a dashboard may
-- more than it needs. The private PostgreSQL of a master needs none of it: nobody else reaches it.
--
--   stepwell_owner  owns schema, tables and functions; migrates: stepwell serve --migrate-only
--   stepwell_app    the master's: reads and writes rows. It owns the partitioned tables and the rings beside them,
--                   for it makes and drops their partitions (a leaf for each day) and analyzes them, which
--                   PostgreSQL lets owners alone do; it may make tables in schema stepwell, and nowhere else.
--   stepwell_read   what docs/schema.md calls public, and nothing else; for Grafana and psql, granted to logins.
--
-- By a superuser, in the master's database, before the first start and again after each --migrate-only (a
-- migration may bring tables); it may run any number of times:
--
--   createdb DATABASE
--   psql -v ON_ERROR_STOP=1 -d DATABASE -f deploy/postgres/roles.sql
--   psql -d DATABASE -c "ALTER ROLE stepwell_owner PASSWORD 'OWNERS'" -c "ALTER ROLE stepwell_app PASSWORD 'APPS'"
--   STEPWELL_DATABASE_URL=postgresql://stepwell_owner:OWNERS@HOST/DATABASE stepwell serve --migrate-only
--   psql -v ON_ERROR_STOP=1 -d DATABASE -f deploy/postgres/roles.sql
--   STEPWELL_DATABASE_URL=postgresql://stepwell_app:APPS@HOST/DATABASE stepwell serve
--
-- Nobody logs in by these roles until they are given a way to: a password as above and, from another machine, a line
-- in pg_hba.conf. docs/schema.md, "Roles", has that, and a login for readers.
BEGIN;
-- No function of a schema in which others may make some.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
  made text;
BEGIN
  FOREACH made IN ARRAY ARRAY['stepwell_owner', 'stepwell_app', 'stepwell_read'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = made) THEN
      EXECUTE format('CREATE ROLE %I NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION', made);
    END IF;
  END LOOP;
END $$;
ALTER ROLE stepwell_owner LOGIN;
ALTER ROLE stepwell_app LOGIN;
ALTER ROLE stepwell_read NOLOGIN;
-- Migrations change what the master owns, too.
GRANT stepwell_app TO stepwell_owner;

DO $$
BEGIN
  -- The schema is made by the first migration.
  EXECUTE format('GRANT CONNECT, CREATE ON DATABASE %I TO stepwell_owner', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO stepwell_app, stepwell_read', current_database());
  -- PostgreSQL lets everybody make temporary tables: a master makes none, nor do those who read.
  EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
END $$;

DO $$
DECLARE
  it record;
BEGIN
  IF to_regnamespace('stepwell') IS NULL THEN
    RAISE NOTICE 'schema stepwell is not there yet: run this once more after --migrate-only';
    RETURN;
  END IF;
  ALTER SCHEMA stepwell OWNER TO stepwell_owner;
  -- What stepwell_app made would get its owner's rights below, or run with those of who writes to it: a master makes
  -- partitions and nothing else. Each is looked at in the row by which it is given away, for the app may be at work meanwhile.
  FOR it IN
    SELECT format('trigger %I on %s', t.tgname, t.tgrelid::regclass) AS name
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'stepwell'::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT format('rule %I on %s', r.rulename, r.ev_class::regclass)
    FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
    WHERE c.relnamespace = 'stepwell'::regnamespace AND r.rulename <> '_RETURN'
  LOOP
    RAISE EXCEPTION '%: none is of Stepwell; look who made it, and drop it', it.name;
  END LOOP;
  REVOKE ALL ON SCHEMA stepwell FROM PUBLIC;
  GRANT USAGE, CREATE ON SCHEMA stepwell TO stepwell_app;
  GRANT USAGE ON SCHEMA stepwell TO stepwell_read;

  FOR it IN
    SELECT c.oid::regclass AS name, c.relkind, c.relowner = 'stepwell_app'::regrole AS is_made_by_app,
      -- What has partitions, is one, or is analyzed as they are.
      c.relkind = 'p' OR c.relispartition OR c.relname ~ '^recent_rollup(s|_ticks)_[0-9]+$' AS is_apps,
      c.relname = 'migrations' AS is_history
    FROM pg_catalog.pg_class c
    WHERE c.relnamespace = 'stepwell'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
      -- The sequence of an identity column goes with its table.
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                      WHERE d.objid = c.oid AND d.deptype IN ('a', 'i') AND c.relkind = 'S')
    ORDER BY c.relkind = 'v', c.oid
  LOOP
    IF it.is_made_by_app AND NOT it.is_apps THEN
      RAISE EXCEPTION 'stepwell_app made %, which no master does: look who has its password, then drop it', it.name;
    ELSIF it.relkind IN ('m', 'f') THEN
      CONTINUE;  -- nobody's of ours
    ELSIF it.relkind = 'S' THEN
      EXECUTE format('ALTER SEQUENCE %s OWNER TO stepwell_owner', it.name);
      EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO stepwell_app', it.name);
    ELSIF it.relkind = 'v' THEN
      EXECUTE format('ALTER VIEW %s OWNER TO stepwell_owner', it.name);
      EXECUTE format('GRANT SELECT ON %s TO stepwell_app', it.name);
    ELSIF it.is_apps THEN
      EXECUTE format('ALTER TABLE %s OWNER TO stepwell_app', it.name);
    ELSE
      EXECUTE format('ALTER TABLE %s OWNER TO stepwell_owner', it.name);
      EXECUTE format('GRANT %s ON %s TO stepwell_app',
        CASE WHEN it.is_history THEN 'SELECT' ELSE 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE' END, it.name);
    END IF;
  END LOOP;

  FOR it IN
    SELECT p.oid::regprocedure AS name, p.proowner = 'stepwell_app'::regrole AS is_made_by_app
    FROM pg_proc p WHERE p.pronamespace = 'stepwell'::regnamespace
  LOOP
    IF it.is_made_by_app THEN
      RAISE EXCEPTION 'stepwell_app made %, which no master does: look who has its password, then drop it', it.name;
    END IF;
    EXECUTE format('ALTER FUNCTION %s OWNER TO stepwell_owner', it.name);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', it.name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO stepwell_app, stepwell_read', it.name);
  END LOOP;
END $$;

COMMIT;
