-- Messages and commits that members who know the SWICG draft alone sent to a conversation's host before the commit that
-- begins their epoch came there.
CREATE TABLE mls_early (
    arrival         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES mls_conversations ON DELETE CASCADE,
    generation      int NOT NULL,
    epoch           bigint NOT NULL,
    sender_uri      text NOT NULL,
    content         bytea NOT NULL,
    content_hash    bytea NOT NULL,
    received_at     timestamptz NOT NULL,
    UNIQUE (conversation_id, content_hash)
);
