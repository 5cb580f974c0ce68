-- What belongs to no user, and what must be known before a user's database is opened.

-- Local users, with where their database lies. A row is never removed: names are not used twice.
CREATE TABLE users (
    username       text PRIMARY KEY CONSTRAINT users_username_check CHECK (username ~ '^[a-z0-9_]{1,30}$'),
    state          text NOT NULL CONSTRAINT users_state_check CHECK (state IN ('creating', 'active', 'suspended', 'deleted')),
    cluster        text NOT NULL DEFAULT 'main', -- which PostgreSQL server
    database       text NOT NULL CONSTRAINT users_database_key UNIQUE,
    schema_version integer NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL DEFAULT now(),
    deleted_at     timestamptz
);

-- Which actors may concern which users here. It may say too much, never too little: a row is committed before the actor's
-- first item enters the user's database, and with follows before a Follow is sent.
CREATE TABLE acquaintances (
    actor_uri text NOT NULL,
    username  text NOT NULL REFERENCES users (username),
    follows   boolean NOT NULL DEFAULT false, -- the user may follow the actor
    PRIMARY KEY (actor_uri, username)
);
CREATE INDEX acquaintances_username ON acquaintances (username);

-- Remote actors as their own servers describe them.
CREATE TABLE actors (
    uri          text PRIMARY KEY,
    host         text NOT NULL,
    handle       text, -- user@host, once WebFinger has confirmed it
    raw          jsonb NOT NULL,
    fetched_at   timestamptz NOT NULL,
    gone_at      timestamptz, -- its server said 410
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX actors_host ON actors (host);
CREATE INDEX actors_handle ON actors (handle) WHERE handle IS NOT NULL;

-- Public keys that an actor lists, each under the one actor that lists it.
CREATE TABLE actor_keys (
    key_id    text PRIMARY KEY,
    actor_uri text NOT NULL REFERENCES actors (uri) ON DELETE CASCADE
);
CREATE INDEX actor_keys_actor ON actor_keys (actor_uri);

CREATE TABLE tokens (
    id           uuid PRIMARY KEY,
    digest       bytea NOT NULL CONSTRAINT tokens_digest_key UNIQUE, -- SHA-256 of the token
    username     text NOT NULL REFERENCES users (username),
    name         text NOT NULL DEFAULT '',
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz, -- to the hour
    expires_at   timestamptz
);
CREATE INDEX tokens_username ON tokens (username);

-- What is remembered of other servers.
CREATE TABLE hosts (
    host       text PRIMARY KEY,
    dialect    text CONSTRAINT hosts_dialect_check CHECK (dialect IN ('rfc9421', 'cavage')), -- of signatures, as last taken
    learned_at timestamptz
);

-- Activities accepted for several users, until the last of them has it. Keys are digests: ids can be long.
CREATE TABLE intake (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uri_digest   bytea NOT NULL, -- SHA-256 of the activity's id
    actor_digest bytea NOT NULL, -- SHA-256 of the sender's id: nobody can occupy another's id
    raw          text NOT NULL,
    recipients   text[] NOT NULL, -- who still lacks it
    rev          integer NOT NULL DEFAULT 0, -- counts merges, so that a row that grew is not dropped
    owner        text NOT NULL, -- the process that drains it
    owner_epoch  bigint NOT NULL,
    due_at       timestamptz NOT NULL, -- when another process may take it over
    attempts     smallint NOT NULL DEFAULT 0,
    received_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT intake_uri_actor_key UNIQUE (uri_digest, actor_digest)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_threshold = 5000);
CREATE INDEX intake_due ON intake (due_at);
