DELETE FROM poison p USING poison q WHERE q.uri = p.uri AND (q.created_at, q.actor_uri) < (p.created_at, p.actor_uri);
ALTER TABLE poison DROP CONSTRAINT poison_pkey, DROP COLUMN actor_uri, ADD PRIMARY KEY (uri);
DELETE FROM requests r USING requests q WHERE q.activity_uri = r.activity_uri AND (q.requested_at, q.actor_uri) < (r.requested_at, r.actor_uri);
ALTER TABLE requests DROP CONSTRAINT requests_pkey, ADD PRIMARY KEY (activity_uri);
DELETE FROM feed f USING feed g WHERE g.activity_uri = f.activity_uri AND g.id < f.id;
ALTER TABLE feed DROP CONSTRAINT feed_actor, ADD CONSTRAINT feed_activity_uri_key UNIQUE (activity_uri);
CREATE INDEX feed_actor ON feed (actor_uri);
DELETE FROM activities a USING activities b WHERE b.uri = a.uri AND b.id < a.id;
ALTER TABLE activities DROP CONSTRAINT activities_uri_key, ADD CONSTRAINT activities_uri_key UNIQUE (uri);
