-- By when somebody has to look at a user's deliveries; nobody has to while it is null. It may be too early, never too late
-- for longer than a sweep takes.
ALTER TABLE users ADD COLUMN next_due timestamptz;
CREATE INDEX users_next_due ON users (next_due) WHERE next_due IS NOT NULL;

-- How it goes with deliveries to each host.
ALTER TABLE hosts
    ADD COLUMN software      text,
    ADD COLUMN failures      integer NOT NULL DEFAULT 0, -- since something got through to it
    ADD COLUMN failing_since timestamptz,                -- the first of them
    ADD COLUMN failed_at     timestamptz,                -- the last of them
    ADD COLUMN failure       text,                       -- and what it was
    ADD COLUMN delivered_at  timestamptz,                -- when something got through to it, as far as that was news
    ADD COLUMN closed_until  timestamptz,                -- nothing is sent before
    ADD COLUMN probes        integer NOT NULL DEFAULT 0, -- attempts that found it closed still
    ADD COLUMN inactive_at   timestamptz,                -- since when its deliveries are parked
    ADD COLUMN paused_at     timestamptz,                -- since when the operator holds them back
    ADD COLUMN changed_at    timestamptz;                -- by the operator
CREATE INDEX hosts_changed ON hosts (changed_at) WHERE changed_at IS NOT NULL;

-- Whose deliveries are parked. It may say too much.
CREATE TABLE parked (
    host     text NOT NULL,
    username text NOT NULL REFERENCES users (username) ON DELETE CASCADE,
    PRIMARY KEY (host, username)
);

-- Servers that pass public posts on to all who subscribed to them (FEP-ae0c).
CREATE TABLE relays (
    actor_uri  text PRIMARY KEY,
    inbox      text NOT NULL,
    style      text NOT NULL CONSTRAINT relays_style_check CHECK (style IN ('mastodon', 'litepub')),
    state      text NOT NULL CONSTRAINT relays_state_check CHECK (state IN ('pending', 'accepted', 'rejected')),
    follow_uri text NOT NULL CONSTRAINT relays_follow_uri_key UNIQUE,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
