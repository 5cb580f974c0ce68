DELETE FROM mls_early e WHERE EXISTS (SELECT FROM mls_early o WHERE o.conversation_id = e.conversation_id AND o.content_hash = e.content_hash AND o.arrival < e.arrival);
ALTER TABLE mls_early DROP CONSTRAINT mls_early_conversation_id_content_hash_sender_uri_key, ADD UNIQUE (conversation_id, content_hash);
DROP INDEX mls_inbox_unplaced_once;
DROP INDEX mls_inbox_once;
DELETE FROM mls_inbox i WHERE conversation_id IS NULL AND kind <> 'opaque'
    AND EXISTS (SELECT FROM mls_inbox o WHERE o.conversation_id IS NULL AND o.kind <> 'opaque' AND o.content_hash = i.content_hash AND o.arrival < i.arrival);
CREATE UNIQUE INDEX mls_inbox_once ON mls_inbox (coalesce(conversation_id, '00000000-0000-0000-0000-000000000000'), content_hash) WHERE kind <> 'opaque';
