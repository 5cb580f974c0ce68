DROP TABLE conversation_entries;
DELETE FROM conversations WHERE mode = 'federated';
ALTER TABLE conversations DROP CONSTRAINT conversations_group,
    DROP COLUMN partner_uri, DROP COLUMN entries, DROP COLUMN read_entry, DROP COLUMN closed_at, DROP COLUMN predecessor_uri, DROP COLUMN successor_uri,
    ADD CONSTRAINT conversations_check CHECK ((group_id IS NOT NULL) = (mode = 'encrypted'));
