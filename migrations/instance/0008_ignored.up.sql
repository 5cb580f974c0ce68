-- Activities that were answered 202 and kept for nobody: nothing disappears without a trace. One row per activity, not per
-- recipient, and no words of it. It is a ring with shares per domain: none pushes out another's.
CREATE TABLE ignored (
    digest     bytea PRIMARY KEY, -- SHA-256 of the activity's canonical id
    reason     text NOT NULL,
    host       text NOT NULL, -- the registrable domain that sent it
    ignored_at timestamptz NOT NULL
);
CREATE INDEX ignored_oldest ON ignored (host, ignored_at);
