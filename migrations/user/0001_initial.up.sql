-- Everything one user has. The raw columns are the truth; extracted columns exist to find and sort rows.

-- Copies of the actors this user knows, so that the database stays whole on its own. Trust lives in the instance database.
CREATE TABLE actors (
    uri                text PRIMARY KEY,
    type               text NOT NULL,
    preferred_username text NOT NULL DEFAULT '',
    inbox              text NOT NULL,
    outbox             text NOT NULL DEFAULT '',
    shared_inbox       text,
    public_key_pem     text NOT NULL DEFAULT '',
    raw                jsonb NOT NULL,
    fetched_at         timestamptz NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE objects (
    id         uuid PRIMARY KEY,
    uri        text NOT NULL,
    published  timestamptz NOT NULL,
    raw        jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz,
    deleted_at timestamptz, -- raw is a Tombstone from then on
    CONSTRAINT objects_uri_key UNIQUE (uri)
);
CREATE INDEX objects_published ON objects (published DESC);
CREATE INDEX objects_type ON objects USING gin ((raw -> 'type'));
CREATE INDEX objects_attributed_to ON objects USING gin ((raw -> 'attributedTo'));
CREATE INDEX objects_in_reply_to ON objects USING gin ((raw -> 'inReplyTo'));
CREATE INDEX objects_tags ON objects USING gin ((raw -> 'lwMetadata' -> 'tags'));

CREATE TABLE activities (
    id         uuid PRIMARY KEY,
    uri        text NOT NULL,
    direction  text NOT NULL CONSTRAINT activities_direction_check CHECK (direction IN ('inbound', 'outbound')),
    type       text NOT NULL,
    actor_uri  text NOT NULL,
    object_uri text, -- what it is about, when that has an id
    published  timestamptz NOT NULL,
    raw        jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT activities_uri_key UNIQUE (uri)
);
CREATE INDEX activities_direction ON activities (direction, published DESC, id DESC);
CREATE INDEX activities_by ON activities (actor_uri);
CREATE INDEX activities_about ON activities (object_uri, type) WHERE object_uri IS NOT NULL;
CREATE INDEX activities_actor ON activities USING gin ((raw -> 'actor'));
CREATE INDEX activities_object ON activities USING gin ((raw -> 'object') jsonb_path_ops);
CREATE INDEX activities_to ON activities USING gin ((raw -> 'to'));
CREATE INDEX activities_cc ON activities USING gin ((raw -> 'cc'));

-- Digests of every activity id this user ever took, or was told is undone. They outlive pruned activities: an id takes
-- effect once, for good.
CREATE TABLE seen (
    digest  bytea PRIMARY KEY, -- SHA-256 of the id
    seen_at timestamptz NOT NULL DEFAULT now()
);

-- Digests of the ids of deleted objects, also of those that were deleted before they arrived.
CREATE TABLE tombstones (
    digest     bytea PRIMARY KEY, -- SHA-256 of the id
    deleted_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE relationships (
    id           uuid PRIMARY KEY,
    actor_uri    text NOT NULL,
    type         text NOT NULL CONSTRAINT relationships_type_check CHECK (type IN ('follower', 'following', 'friend')),
    relation     text NOT NULL DEFAULT '', -- which kind of friend; empty for follows
    status       text NOT NULL CONSTRAINT relationships_status_check CHECK (status IN ('pending', 'accepted', 'rejected')),
    activity_uri text NOT NULL, -- the Follow or Offer that made it
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT relationships_actor_type_relation_key UNIQUE (actor_uri, type, relation)
);
CREATE INDEX relationships_listed ON relationships (type, status, created_at DESC, id DESC);

CREATE TABLE feed (
    id           uuid PRIMARY KEY,
    activity_uri text NOT NULL,
    actor_uri    text NOT NULL,
    published    timestamptz NOT NULL, -- never later than its arrival: a remote clock cannot pin a post to the top
    created_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT feed_activity_uri_key UNIQUE (activity_uri)
);
CREATE INDEX feed_published ON feed (published DESC, id DESC);
CREATE INDEX feed_actor ON feed (actor_uri);

-- What actors think of objects: one review (Like or Dislike) and one Announce per actor and object.
CREATE TABLE reactions (
    object_uri   text NOT NULL,
    actor_uri    text NOT NULL,
    kind         text NOT NULL CONSTRAINT reactions_kind_check CHECK (kind IN ('review', 'announce')),
    type         text NOT NULL,
    activity_uri text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (object_uri, kind, actor_uri)
);
CREATE INDEX reactions_activity ON reactions (activity_uri);
CREATE INDEX reactions_actor ON reactions (actor_uri);

CREATE TABLE groups (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CONSTRAINT groups_name_key UNIQUE,
    uri        text NOT NULL CONSTRAINT groups_uri_key UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE group_members (
    group_id  uuid NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    actor_uri text NOT NULL,
    added_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_id, actor_uri)
);

-- One fan-out of one activity, with the bytes as they are sent.
CREATE TABLE delivery_jobs (
    id           uuid PRIMARY KEY,
    activity_uri text NOT NULL,
    object_uri   text, -- deliveries about one object to one inbox keep their order
    type         text NOT NULL,
    body         bytea NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT delivery_jobs_activity_uri_key UNIQUE (activity_uri)
);
CREATE INDEX delivery_jobs_object ON delivery_jobs (object_uri) WHERE object_uri IS NOT NULL;

-- One activity owed to one inbox.
CREATE TABLE deliveries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      uuid NOT NULL REFERENCES delivery_jobs (id) ON DELETE CASCADE,
    inbox       text NOT NULL,
    host        text NOT NULL, -- empty for a local inbox
    targets     text[] NOT NULL, -- the actors behind it who are to have the activity
    status      text NOT NULL DEFAULT 'pending' CONSTRAINT deliveries_status_check
                CHECK (status IN ('pending', 'delivered', 'failed', 'skipped')),
    attempts    smallint NOT NULL DEFAULT 0,
    next_at     timestamptz NOT NULL, -- when it is due; while leased, when the lease ends
    lease_owner text,                 -- the process that holds it
    last_status integer,
    last_answer bytea, -- the first 1 KiB of the answer, for failures
    last_error  text,
    latency_ms  integer,
    bytes_out   bigint NOT NULL DEFAULT 0,
    bytes_in    bigint NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT deliveries_job_inbox_key UNIQUE (job_id, inbox)
) WITH (fillfactor = 70);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE status = 'pending';

-- What happened, in the order it committed. The newest 10,000 are kept.
CREATE TABLE event_outbox (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type       text NOT NULL,
    source     text NOT NULL,
    payload    jsonb NOT NULL,
    created_at timestamptz NOT NULL
);

-- Every action dispatched in the user's name: what, by which token, with which outcome. No secrets, no ciphertext.
CREATE TABLE audit (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL,
    token_id     uuid,
    action       text NOT NULL,
    params       jsonb NOT NULL,
    outcome      text NOT NULL, -- 'ok', or the code of the refusal
    activity_uri text
);
CREATE INDEX audit_at ON audit (at DESC);

-- Answers to dispatches that carried an Idempotency-Key, kept a day.
CREATE TABLE idempotency_keys (
    key        text PRIMARY KEY,
    digest     bytea NOT NULL, -- SHA-256 of the request's body
    answer     jsonb NOT NULL,
    created_at timestamptz NOT NULL
);

-- Activities that could not be applied, set aside with the reason so that they hold up nobody.
CREATE TABLE poison (
    uri        text PRIMARY KEY,
    raw        bytea NOT NULL, -- as it came: it may be no text
    reason     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
