-- Since when nothing of the actor is in the user's database, as a night found it. A row that is found so again goes, unless
-- something came meanwhile: that takes the mark away.
ALTER TABLE acquaintances ADD COLUMN idle_at timestamptz;
DROP INDEX acquaintances_username;
CREATE INDEX acquaintances_username ON acquaintances (username, actor_uri);
