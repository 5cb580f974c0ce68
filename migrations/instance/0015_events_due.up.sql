-- When a process that does not serve added events to a user's database; null once whoever serves has seen it.
ALTER TABLE users ADD COLUMN events_due timestamptz;
CREATE INDEX users_events_due ON users (username) WHERE events_due IS NOT NULL;
