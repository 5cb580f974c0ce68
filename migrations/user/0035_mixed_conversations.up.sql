-- A conversation is mixed while somebody is in its MLS group who knows the SWICG draft alone: commits and proposals are PrivateMessages then.
ALTER TABLE mls_conversations ADD COLUMN mixed boolean NOT NULL DEFAULT false;
UPDATE mls_conversations h SET mixed = true WHERE EXISTS (SELECT FROM conversation_members m WHERE m.conversation_id = h.id AND m.left_seq IS NULL AND NOT m.lightweb);
ALTER TABLE mls_joined ADD COLUMN mixed boolean NOT NULL DEFAULT false; -- as its host says
