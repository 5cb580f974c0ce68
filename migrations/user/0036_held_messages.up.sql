-- Creates of the user that wait until the host of a conversation has put their message in order: by them members get it who know the SWICG draft alone.
CREATE TABLE mls_held (
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    content_hash    bytea NOT NULL,    -- of the message or commit that they wait for
    place           int NOT NULL,      -- in which they leave
    activity_uri    text NOT NULL,
    body            bytea NOT NULL,
    recipients      text[] NOT NULL,
    inboxes         text[] NOT NULL,   -- of the recipients, in their order
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (conversation_id, content_hash, place)
);
CREATE INDEX mls_held_age ON mls_held (created_at);
