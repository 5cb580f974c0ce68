ALTER TABLE conversation_members DROP COLUMN lightweb;
UPDATE mls_conversations SET group_info = '' WHERE group_info IS NULL;
ALTER TABLE mls_conversations DROP COLUMN last_hash, ALTER COLUMN group_info SET NOT NULL;
