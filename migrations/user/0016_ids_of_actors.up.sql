-- Two actors of one server may use the same id: what one does under it takes nothing from the other. The digests in seen and
-- tombstones are, from here on, half of that of the id and half of that of the actor or author; rows from before, which
-- have the whole digest of the id, count for everybody.
ALTER TABLE activities DROP CONSTRAINT activities_uri_key, ADD CONSTRAINT activities_uri_key UNIQUE (uri, actor_uri);
DROP INDEX feed_actor;
ALTER TABLE feed DROP CONSTRAINT feed_activity_uri_key, ADD CONSTRAINT feed_actor UNIQUE (actor_uri, activity_uri); -- for both questions
ALTER TABLE requests DROP CONSTRAINT requests_pkey, ADD PRIMARY KEY (activity_uri, actor_uri);
ALTER TABLE poison ADD COLUMN actor_uri text NOT NULL DEFAULT '', -- empty: nobody can read it, or it is from before
    DROP CONSTRAINT poison_pkey, ADD PRIMARY KEY (uri, actor_uri);
