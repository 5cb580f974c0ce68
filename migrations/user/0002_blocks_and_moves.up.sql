-- Who is shut out, and which accounts have moved: both decide over what comes later, and must commit with it.

-- Blocks between the user and an actor. Compared by digest: whoever is blocked writes its id in other ways otherwise.
CREATE TABLE blocks (
    digest       bytea NOT NULL, -- SHA-256 of the actor's id
    direction    text NOT NULL CONSTRAINT blocks_direction_check CHECK (direction IN ('inbound', 'outbound')), -- outbound: the user blocks the actor
    actor_uri    text NOT NULL,
    activity_uri text NOT NULL, -- the Block
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (digest, direction)
);

-- The last move of each account that the user followed.
CREATE TABLE moves (
    digest        bytea PRIMARY KEY, -- SHA-256 of the old account's id
    target_digest bytea NOT NULL,    -- and of the new one's
    moved_at      timestamptz NOT NULL
);
CREATE INDEX moves_target ON moves (target_digest);
