-- 0014 tokens. Why: tokens that may do less than everything: to ingest one trial, to read or write a project.
-- Lock: none that matters, all is new. Time: under 10 ms.
-- No role but the master's reads them: nothing is granted to stepwell_read.

-- One per token, kept for 30 days after its end.
CREATE TABLE stepwell.tokens (
  token_id text PRIMARY KEY CHECK (token_id ~ '^[0-9a-f]{12}$'),
  -- Of the secret, which nobody has but its holder.
  secret_sha256 bytea NOT NULL CHECK (octet_length(secret_sha256) = 32),
  -- For people; several may have the same.
  name text NOT NULL,
  -- As written on command lines: 'read:vision', 'ingest:vision/run-7', 'ingest:id:7', 'admin'.
  grants text[] NOT NULL CHECK (cardinality(grants) > 0),
  created_time timestamptz NOT NULL DEFAULT now(),
  -- NULL = never.
  expires_time timestamptz,
  -- Written once a minute at most; NULL = not yet.
  used_time timestamptz,
  -- NULL = it lives.
  revoked_time timestamptz
);
CREATE INDEX tokens_newest_first ON stepwell.tokens (created_time, token_id);

-- One row: raised by each transaction that makes or revokes a token, so that masters see with one short
-- question whether what they remember is so still.
CREATE TABLE stepwell.token_changes (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  change_no bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO stepwell.token_changes DEFAULT VALUES;
