-- Which of its objects an actor shows first, as its Add and Remove to its featured collection said.
CREATE TABLE pins (
    actor_uri    text NOT NULL,
    object_uri   text NOT NULL,
    activity_uri text NOT NULL, -- the Add
    pinned_at    timestamptz NOT NULL,
    PRIMARY KEY (actor_uri, object_uri)
);
CREATE INDEX pins_object ON pins (object_uri);

-- Who voted for what in the user's polls. The Question holds the counts, and nothing that is served names a voter.
CREATE TABLE votes (
    question_uri text NOT NULL,
    actor_uri    text NOT NULL,
    option       smallint NOT NULL, -- its place among the Question's options, from 0
    voted_at     timestamptz NOT NULL,
    PRIMARY KEY (question_uri, actor_uri, option)
);
CREATE INDEX votes_actor ON votes (actor_uri);
