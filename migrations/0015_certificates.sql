-- 0015 certificates. Why: grants that the name of a client's certificate opens, and no secret.
-- Lock: of the table of tokens alone, brief. 10,000 tokens: under 50 ms.
-- "dns:agent-7.lab", "uri:spiffe://lab/agent/7", "cn:agent 7"; NULL = a secret opens it. Of those that live at
-- most one has a name: who makes one looks, holding the row of token_changes.
ALTER TABLE stepwell.tokens
  ADD COLUMN certificate text,
  ALTER COLUMN secret_sha256 DROP NOT NULL,
  ADD CONSTRAINT tokens_one_key
    CHECK ((certificate IS NULL) <> (secret_sha256 IS NULL) AND certificate <> '');
