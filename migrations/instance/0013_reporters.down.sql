DROP INDEX reports_open;
ALTER TABLE reports DROP COLUMN domain;
CREATE INDEX reports_open ON reports (host) WHERE state = 'open';
