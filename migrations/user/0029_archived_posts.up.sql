-- Posts that the user wrote under another account, as an import brought them. They are nobody's but the user's to read, and
-- have no part in federation: neither deliveries nor what other servers say reaches them.
CREATE TABLE archived_posts (
    object_uri   text PRIMARY KEY,
    id           uuid NOT NULL,
    activity_uri text NOT NULL,
    actor_uri    text NOT NULL, -- the other account
    published    timestamptz NOT NULL,
    activity     jsonb NOT NULL, -- without its object
    object       jsonb NOT NULL,
    readable     jsonb NOT NULL
);
CREATE INDEX archived_posts_place ON archived_posts (published DESC, id DESC);
