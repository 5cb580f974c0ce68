DROP TABLE unnamed_recipients;
DROP INDEX group_members_actor;
ALTER TABLE group_members DROP COLUMN activity_uri;
ALTER TABLE groups DROP COLUMN activity_uri;
