ALTER TABLE intake DROP COLUMN signed_at;
