-- What the user's devices are told of conversations: of those that others put in order, the state as their hosts tell it.

CREATE TABLE mls_joined (
    id             uuid PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
    generation     int NOT NULL CHECK (generation >= 0),
    epoch          bigint NOT NULL CHECK (epoch >= 0),
    last_seq       bigint NOT NULL CHECK (last_seq >= 0),  -- the highest number that was heard of
    whole_seq      bigint NOT NULL CHECK (whole_seq >= 0 AND whole_seq <= last_seq), -- up to which none is missing
    roster_seq     bigint NOT NULL CHECK (roster_seq >= 0), -- of the entry that told last who is in it
    status         text NOT NULL CHECK (status IN ('active', 'reset_pending', 'closed', 'frozen')),
    reset_group_id text CHECK ((reset_group_id IS NOT NULL) = (status = 'reset_pending')), -- the group that comes next
    former_groups  text[] NOT NULL,
    confirmed      boolean NOT NULL, -- a device of the user has joined
    updated_at     timestamptz NOT NULL
);

-- Messages of MLS in the order in which they came. Those of a conversation have the numbers of its host's log; where there
-- is no host, they are numbered as they come.
CREATE TABLE mls_inbox (
    arrival         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation_id uuid REFERENCES conversations ON DELETE CASCADE, -- null: of a group that the user is not known to be in
    group_id        text NOT NULL, -- as the message says; empty when it does not
    seq             bigint CHECK (seq > 0), -- null: its host has not put it in order
    generation      int NOT NULL,
    epoch           bigint NOT NULL, -- in which it was made
    kind            text NOT NULL CHECK (kind IN ('commit', 'proposal', 'application', 'welcome', 'opaque')),
    sender_uri      text NOT NULL,
    object_uri      text NOT NULL,
    content         bytea NOT NULL,
    content_hash    bytea NOT NULL,
    receipt         bytea,            -- of the host, which holds
    blocked         boolean NOT NULL, -- its sender was blocked when it came
    activity        text NOT NULL,    -- as it came, without its content; empty: it was read from the log of the host
    content_at      int NOT NULL,     -- where the content stands in the activity; -1: it was not taken out
    received_at     timestamptz NOT NULL
);
CREATE UNIQUE INDEX mls_inbox_once ON mls_inbox (coalesce(conversation_id, '00000000-0000-0000-0000-000000000000'), content_hash) WHERE kind <> 'opaque';
CREATE UNIQUE INDEX mls_inbox_order ON mls_inbox (conversation_id, seq);
CREATE INDEX mls_inbox_commits ON mls_inbox (conversation_id, generation, epoch) WHERE kind = 'commit';
CREATE INDEX mls_inbox_unplaced ON mls_inbox (group_id) WHERE conversation_id IS NULL;
CREATE INDEX mls_inbox_sender ON mls_inbox (sender_uri);
CREATE INDEX mls_inbox_age ON mls_inbox (received_at);

-- A Welcome to a group without a host does not tell which group that is.
ALTER TABLE mls_welcomes ALTER COLUMN conversation_id DROP NOT NULL, ADD COLUMN sender_uri text NOT NULL DEFAULT '', ADD COLUMN object_uri text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX mls_welcomes_unplaced ON mls_welcomes (key_package_ref, sender_uri) WHERE conversation_id IS NULL;
