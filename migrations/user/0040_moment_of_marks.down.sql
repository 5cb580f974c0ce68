DROP INDEX activities_arrived;
DROP INDEX feed_arrived;
ALTER TABLE feed_marks DROP COLUMN marked_at;
