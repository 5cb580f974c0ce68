-- Refused actions are counted: one row for each token, action, outcome and hour, with the parameters of the first.
ALTER TABLE audit ADD COLUMN times integer NOT NULL DEFAULT 1, -- how often
    ADD COLUMN hour timestamptz;                                -- in which refusals are counted; null for what was done
CREATE UNIQUE INDEX audit_refusals ON audit (coalesce(token_id, '00000000-0000-0000-0000-000000000000'::uuid), action, outcome, hour) WHERE hour IS NOT NULL;
