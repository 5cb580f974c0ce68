DROP INDEX objects_changed;
ALTER TABLE objects DROP COLUMN changed;
