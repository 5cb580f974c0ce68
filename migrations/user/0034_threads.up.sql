-- Private Notes between the user and one other actor are a conversation of their own, a thread, which becomes encrypted
-- once and for good.

ALTER TABLE conversations
    ADD COLUMN partner_uri     text, -- the other actor of a conversation of two
    ADD COLUMN entries         bigint NOT NULL DEFAULT 0 CHECK (entries >= 0), -- the last number of conversation_entries
    ADD COLUMN read_entry      bigint NOT NULL DEFAULT 0 CHECK (read_entry >= 0),
    ADD COLUMN closed_at       timestamptz, -- nothing is written any more
    ADD COLUMN predecessor_uri text, -- the conversation that this one continues
    ADD COLUMN successor_uri   text,
    DROP CONSTRAINT conversations_check,
    ADD CONSTRAINT conversations_group CHECK (group_id IS NOT NULL OR mode <> 'encrypted'); -- a thread that is being upgraded has one
-- Two actors have one conversation that goes on, or waits for its successor.
CREATE UNIQUE INDEX conversations_partner ON conversations (partner_uri) WHERE successor_uri IS NULL;

-- What a conversation shows beside its messages of MLS: Notes, and what became of it.
CREATE TABLE conversation_entries (
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    n               bigint NOT NULL, -- negative: from before there was the conversation
    seq             bigint NOT NULL CHECK (seq >= 0), -- of the log, after which it stands
    kind            text NOT NULL CHECK (kind IN ('note', 'upgraded', 'closed', 'successor')),
    object_uri      text REFERENCES objects (uri) ON DELETE CASCADE CHECK ((object_uri IS NOT NULL) = (kind = 'note')),
    own             boolean NOT NULL, -- the user wrote it, or did it
    at              timestamptz NOT NULL,
    PRIMARY KEY (conversation_id, n),
    UNIQUE (conversation_id, object_uri)
);
CREATE INDEX conversation_entries_object ON conversation_entries (object_uri);
