-- Private messages of strangers, which wait until the user takes or declines them: their activities and objects are stored as all
-- are, and are in no other feed meanwhile.
CREATE TABLE requests (
    activity_uri text PRIMARY KEY,
    actor_uri    text NOT NULL,
    host         text NOT NULL, -- the sender's registrable domain
    requested_at timestamptz NOT NULL
);
CREATE INDEX requests_actor ON requests (actor_uri);
CREATE INDEX requests_host ON requests (host);

-- Senders whose private messages the user takes although it does not follow them.
CREATE TABLE correspondents (
    actor_uri   text PRIMARY KEY,
    accepted_at timestamptz NOT NULL
);
