DROP INDEX acquaintances_username;
CREATE INDEX acquaintances_username ON acquaintances (username);
ALTER TABLE acquaintances DROP COLUMN idle_at;
