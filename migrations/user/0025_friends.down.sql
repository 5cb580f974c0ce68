DROP INDEX relationships_offered;
ALTER TABLE relationships DROP CONSTRAINT relationships_direction_check, DROP COLUMN host, DROP COLUMN direction;
