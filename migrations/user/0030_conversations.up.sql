-- The conversations that the user takes part in, and those that this server puts in order for the user.

CREATE TABLE conversations (
    id            uuid PRIMARY KEY,
    uri           text NOT NULL UNIQUE,
    mode          text NOT NULL CHECK (mode IN ('federated', 'encrypted')),
    host_uri      text NOT NULL, -- of the actor whose server puts it in order; a member, too
    group_id      text UNIQUE CHECK ((group_id IS NOT NULL) = (mode = 'encrypted')), -- of the MLS group now
    upgraded_at   timestamptz, -- a federated one that became encrypted
    last_read_seq bigint NOT NULL DEFAULT 0 CHECK (last_read_seq >= 0),
    created_at    timestamptz NOT NULL
);

-- An actor has one row in a conversation, however many devices it has there: these stand in the group info.
CREATE TABLE conversation_members (
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    actor_uri       text NOT NULL,
    role            text NOT NULL CHECK (role IN ('admin', 'member')),
    joined_seq      bigint NOT NULL CHECK (joined_seq >= 0), -- what came later is the member's to read
    left_seq        bigint CHECK (left_seq > joined_seq),    -- null while it is a member
    leaving         boolean NOT NULL DEFAULT false,          -- it asked to be removed
    rejoined_at     timestamptz,                             -- a device of it that had lost its state
    PRIMARY KEY (conversation_id, actor_uri)
);
CREATE INDEX conversation_members_actor ON conversation_members (actor_uri);

-- The state of the conversations that the user hosts. A term begins whenever another database may have handed out epochs.
CREATE TABLE mls_conversations (
    id             uuid PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
    generation     int NOT NULL DEFAULT 0 CHECK (generation >= 0), -- one MLS group after another
    term           int NOT NULL DEFAULT 0 CHECK (term >= 0),
    epoch          bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    last_seq       bigint NOT NULL DEFAULT 0 CHECK (last_seq >= 0),
    status         text NOT NULL CHECK (status IN ('active', 'reset_pending', 'closed')),
    group_info     bytea NOT NULL, -- at this epoch
    former_groups  text[] NOT NULL DEFAULT '{}',
    reset_group_id text UNIQUE CHECK ((reset_group_id IS NOT NULL) = (status = 'reset_pending')), -- the group that comes next
    updated_at     timestamptz NOT NULL
);

CREATE TABLE mls_log (
    conversation_id uuid NOT NULL REFERENCES mls_conversations ON DELETE CASCADE,
    seq             bigint NOT NULL CHECK (seq > 0),
    generation      int NOT NULL,
    epoch           bigint NOT NULL, -- in which it was made
    kind            text NOT NULL CHECK (kind IN ('commit', 'proposal', 'application')),
    sender_uri      text NOT NULL,
    content         bytea NOT NULL,
    content_hash    bytea NOT NULL,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (conversation_id, seq),
    UNIQUE (conversation_id, content_hash)
);
-- The second lock: whatever the engine does, an epoch has one commit.
CREATE UNIQUE INDEX mls_log_one_commit ON mls_log (conversation_id, generation, epoch) WHERE kind = 'commit';
CREATE INDEX mls_log_age ON mls_log (created_at);

-- Welcomes that members of the user's conversations owe to whoever they added, and those that the user was sent.
CREATE TABLE mls_welcomes (
    id              uuid PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    recipient_uri   text NOT NULL,
    key_package_ref bytea NOT NULL,
    content         bytea NOT NULL,
    state           text NOT NULL CHECK (state IN ('available', 'in_flight', 'consumed', 'invalid')),
    leased_until    timestamptz CHECK ((leased_until IS NOT NULL) = (state = 'in_flight')),
    created_at      timestamptz NOT NULL,
    UNIQUE (conversation_id, key_package_ref)
);
CREATE INDEX mls_welcomes_waiting ON mls_welcomes (recipient_uri, created_at) WHERE state IN ('available', 'in_flight');
CREATE INDEX mls_welcomes_ref ON mls_welcomes (key_package_ref);
