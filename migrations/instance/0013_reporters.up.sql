-- Who pays for a report: names below one domain are one reporter. Reports from before count for the name of their host,
-- which is the domain of most.
ALTER TABLE reports ADD COLUMN domain text NOT NULL DEFAULT '';
UPDATE reports SET domain = regexp_replace(host, '(\.[a-z][a-z0-9-]*):[0-9]+$', '\1');
ALTER TABLE reports ALTER COLUMN domain DROP DEFAULT;
DROP INDEX reports_open;
CREATE INDEX reports_open ON reports (domain, actor) WHERE state = 'open';
