-- The search index finds the objects that were edited by their latest change. An edit need not leave an activity.
ALTER TABLE objects
    ADD COLUMN changed uuid; -- of the latest edit: a UUID of version 7, in the order of the edits; null: none since this migration
CREATE INDEX objects_changed ON objects (changed) WHERE changed IS NOT NULL;
