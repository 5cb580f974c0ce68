DROP INDEX mls_inbox_commits;
CREATE INDEX mls_inbox_commits ON mls_inbox (conversation_id, generation, epoch) WHERE kind = 'commit';
DROP INDEX mls_inbox_age;
CREATE INDEX mls_inbox_age ON mls_inbox (received_at);
DROP INDEX mls_log_age;
CREATE INDEX mls_log_age ON mls_log (created_at);
