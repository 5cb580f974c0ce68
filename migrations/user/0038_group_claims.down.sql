DELETE FROM conversations c WHERE NOT confirmed AND EXISTS (SELECT FROM conversations o WHERE o.group_id = c.group_id AND (o.confirmed OR o.id < c.id));
DROP INDEX conversations_invited;
DROP INDEX conversations_claimed;
ALTER TABLE conversations ADD CONSTRAINT conversations_group_id_key UNIQUE (group_id);
ALTER TABLE mls_joined ADD COLUMN confirmed boolean;
UPDATE mls_joined j SET confirmed = c.confirmed FROM conversations c WHERE c.id = j.id;
ALTER TABLE mls_joined ALTER COLUMN confirmed SET NOT NULL;
ALTER TABLE conversations DROP COLUMN confirmed;
