DELETE FROM mls_welcomes WHERE conversation_id IS NULL;
DROP INDEX mls_welcomes_unplaced;
ALTER TABLE mls_welcomes ALTER COLUMN conversation_id SET NOT NULL, DROP COLUMN sender_uri, DROP COLUMN object_uri;
DROP TABLE mls_inbox;
DROP TABLE mls_joined;
