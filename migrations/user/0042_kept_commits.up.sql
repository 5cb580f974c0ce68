-- Commits of an open conversation stay beyond the age of other messages. So old messages are found without them, and the
-- newest commits of a conversation in their order.
DROP INDEX mls_log_age;
CREATE INDEX mls_log_age ON mls_log (created_at) WHERE kind <> 'commit';
DROP INDEX mls_inbox_age;
CREATE INDEX mls_inbox_age ON mls_inbox (received_at) WHERE kind <> 'commit' OR seq IS NULL;
DROP INDEX mls_inbox_commits;
CREATE INDEX mls_inbox_commits ON mls_inbox (conversation_id, generation, epoch, arrival) WHERE kind = 'commit';
