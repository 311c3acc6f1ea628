-- 0016 fetched_tokens. Why: short-lived tokens of one trial each, which agents and launchers fetch by themselves.
-- Lock: of the table of tokens alone, brief. 10,000 tokens: under 50 ms.
ALTER TABLE stepwell.tokens
  -- NULL: CreateToken made it. Else whose end ends it: a token_id, or 'admin:' and what tells one token of a
  -- master's file from the next.
  ADD COLUMN made_by text CHECK (made_by <> ''),
  -- The first of those that were renewed one from the other, itself for the first.
  ADD COLUMN family text,
  -- When that one was made: renewals end some time after it.
  ADD COLUMN family_time timestamptz,
  -- token_changes.fetch_no as it was fetched: masters learn those beyond the number that they know.
  ADD COLUMN fetch_no bigint,
  ADD CONSTRAINT tokens_fetched CHECK ((made_by IS NULL) = (family IS NULL)
    AND (made_by IS NULL) = (family_time IS NULL)
    AND (made_by IS NULL) = (fetch_no IS NULL)
    AND (made_by IS NULL OR (expires_time IS NOT NULL AND cardinality(grants) = 1)));
-- The others are few, whatever is fetched: those who look for them find them by themselves.
CREATE INDEX tokens_made ON stepwell.tokens (created_time, token_id) WHERE made_by IS NULL;
CREATE INDEX tokens_of_makers ON stepwell.tokens (made_by, (grants[1]), expires_time)
  WHERE made_by IS NOT NULL;
CREATE INDEX tokens_of_families ON stepwell.tokens (family, expires_time) WHERE made_by IS NOT NULL;
CREATE INDEX tokens_as_fetched ON stepwell.tokens (fetch_no) WHERE made_by IS NOT NULL;
CREATE INDEX tokens_fetched_end ON stepwell.tokens (expires_time) WHERE made_by IS NOT NULL;
-- Raised by each that is fetched: change_no is not, for then all that live would be read again.
ALTER TABLE stepwell.token_changes ADD COLUMN fetch_no bigint NOT NULL DEFAULT 0;
