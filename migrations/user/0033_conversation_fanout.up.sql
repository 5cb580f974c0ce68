-- What the host of a conversation needs to tell its members, and to answer those who know the SWICG draft alone.
ALTER TABLE mls_conversations
    ADD COLUMN last_hash bytea NOT NULL DEFAULT '', -- SHA-256 of the last message of the log: messages are pruned, and the next one names it
    ALTER COLUMN group_info DROP NOT NULL; -- null while nobody has given that of the epoch, which only a member who is not of Lightweb may do
UPDATE mls_conversations m SET last_hash = l.content_hash FROM mls_log l WHERE l.conversation_id = m.id AND l.seq = m.last_seq;

ALTER TABLE conversation_members
    ADD COLUMN lightweb boolean NOT NULL DEFAULT true; -- its server takes what the host sends; any other one knows the SWICG draft alone
