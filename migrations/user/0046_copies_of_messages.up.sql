-- Before its group is known, a message may come from several actors, and only one of them is its author: each may have sent it.
-- In its conversation it is once. The same holds for messages that wait for their epoch, and for the log they enter.
DROP INDEX mls_inbox_once;
CREATE UNIQUE INDEX mls_inbox_once ON mls_inbox (conversation_id, content_hash) WHERE kind <> 'opaque' AND conversation_id IS NOT NULL;
CREATE UNIQUE INDEX mls_inbox_unplaced_once ON mls_inbox (content_hash, sender_uri) WHERE kind <> 'opaque' AND conversation_id IS NULL;
ALTER TABLE mls_early DROP CONSTRAINT mls_early_conversation_id_content_hash_key, ADD UNIQUE (conversation_id, content_hash, sender_uri);
