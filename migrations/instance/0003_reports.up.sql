-- What other servers report to the operator. It is in no user's database: least of all in that of the one who is reported.
CREATE TABLE reports (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest      bytea NOT NULL CONSTRAINT reports_digest_key UNIQUE, -- SHA-256 of the Flag's id
    activity    text NOT NULL,
    actor       text NOT NULL, -- who reports: often the actor of a whole server
    host        text NOT NULL,
    objects     text[] NOT NULL,
    users       text[] NOT NULL, -- whose objects, or who, among them
    content     text NOT NULL,
    received_at timestamptz NOT NULL,
    state       text NOT NULL DEFAULT 'open' CONSTRAINT reports_state_check CHECK (state IN ('open', 'resolved')),
    resolved_at timestamptz,
    note        text NOT NULL DEFAULT ''
);
CREATE INDEX reports_open ON reports (host) WHERE state = 'open';
