-- Groups are for addressing, and nobody but the user knows of them: their ids say nothing, and stand in no document that leaves.
ALTER TABLE groups ADD COLUMN activity_uri text NOT NULL; -- the Create
ALTER TABLE group_members ADD COLUMN activity_uri text NOT NULL; -- the Add
CREATE INDEX group_members_actor ON group_members (actor_uri);

-- Recipients that an object of the user's does not name: the members that the group had then.
CREATE TABLE unnamed_recipients (
    object_uri text NOT NULL,
    group_uri  text NOT NULL,
    actors     text[] NOT NULL,
    PRIMARY KEY (object_uri, group_uri)
);
CREATE INDEX unnamed_recipients_actors ON unnamed_recipients USING gin (actors);
