-- Accounts that an import wants a user to block, mute or follow, until the engine that serves has seen to it.
CREATE TABLE wishes (
    username text NOT NULL REFERENCES users (username),
    kind     text NOT NULL CONSTRAINT wishes_kind_check CHECK (kind IN ('block', 'mute', 'follow')),
    account  text NOT NULL, -- a handle or an id
    host     text NOT NULL,
    attempts smallint NOT NULL DEFAULT 0,
    due_at   timestamptz NOT NULL,
    PRIMARY KEY (username, kind, account)
);
CREATE INDEX wishes_due ON wishes (username, kind, due_at);
