ALTER TABLE mls_joined DROP COLUMN mixed;
ALTER TABLE mls_conversations DROP COLUMN mixed;
